// Package literal finds many fixed strings in a text in one pass, without
// looking at most of its bytes.
//
// It is a filter of 4-byte blocks read at a fixed stride: an occurrence of a
// string of n bytes holds n-3 such blocks, so every (n-3)th position is enough
// to notice it. Only a position whose block belongs to one of the strings is
// compared byte by byte. A server's log is nearly all lines that hold no known
// string, so the price of a byte is the price of a few table lookups.
//
// A Searcher does the same for a text of lines. A log has few kinds of line that
// come again and again with other numbers in them; each kind is searched once,
// and is known again by a hash of all that its lines share. So no byte is left
// unseen, and a known string in the middle of such a line makes it another kind.
// On processors without AVX2 and AES instructions it is the Matcher alone.
//
// The package knows nothing of logs. It may not do I/O.
package literal
