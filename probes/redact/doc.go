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
// The package may not read anything itself, keep anything, or import any other
// part of whyhang. It rather hides too much than too little.
package redact
