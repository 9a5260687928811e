// Package redact removes secrets from what a target shows of itself: its
// command line, its environment, its log lines. It works when evidence is
// collected, so that nothing downstream ever holds a secret.
//
// Two things give a secret away: the name it stands under (--api-key,
// HF_TOKEN, "password": …) and its own shape (hf_…, sk-…, a JWT, a URL with a
// password). The language of inference servers is full of innocent "tokens"
// and "keys" (--max-total-tokens, #cached-token: 512, --key-value-…), and the
// log rules read their numbers, so names are weighed and not just searched.
//
// A word weighs more in a command line or an environment than in a log, and
// most in the query of a URL. From the way of a text: text.go goes over it until
// nothing changes; shapes.go, keyforms.go and pem.go know secrets by their form;
// pair.go, option.go and query.go find names, names.go weighs them, span.go
// finds where the value ends, values.go judges it. argv.go and shortopt.go are
// for command lines, whose words have known ends.
//
// Visible on purpose: user names of curl -u, ids of AWS keys under their own
// name, session and request ids, expiry and other unsigned fields of presigned
// URLs, checksums, "tokens" without a word of access in front, and secrets
// under no name and of no known form.
//
// The package may not read anything itself, keep anything, or import any other
// part of whyhang. It rather hides too much than too little.
package redact
