// Package demo holds the built-in processes of `whyhang demo`: each really is
// what its name says (deadlocked, loading, ready), in a child process of
// whyhang, so that a newcomer sees a true verdict within seconds.
//
// It may not know anything of the diagnosis: whyhang meets these processes as
// it meets any other.
package demo
