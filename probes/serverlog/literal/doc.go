// Package literal finds many fixed strings in a text in one pass, without
// looking at most of its bytes.
//
// It is a filter of 4-byte blocks read at a fixed stride: an occurrence of a
// string of n bytes holds n-3 such blocks, so every (n-3)th position is enough
// to notice it. Only a position whose block belongs to one of the strings is
// compared byte by byte. A server's log is nearly all lines that hold no known
// string, so the price of a byte is the price of a few table lookups.
//
// The package knows nothing of logs. It may not do I/O.
package literal
