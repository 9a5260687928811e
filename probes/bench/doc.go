// Package bench measures how fast a server decodes one stream: a warm-up that
// is thrown away, then three different prompts one after another, up to five
// if they scatter. It says how many tokens a second one user gets, with the
// spread, under the key names of `vllm bench serve`.
//
// The package may not have more than one request in flight, run past its
// budget, flush a cache of the server or count a broken stream as a short one.
// It cannot show long contexts, prefill speed, many users at once, or how the
// number changes from start to start of the server.
package bench
