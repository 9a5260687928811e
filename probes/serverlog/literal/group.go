package literal

import (
	"encoding/binary"
	"maps"
	"slices"
)

// block is the number of bytes that the filter looks at together.
const block = 4

// filterBits is the size of the filter as a power of two: 2^17 bits are 16 KiB,
// which stays in the first cache. Smaller ones let more blocks pass that only
// share a hash.
const filterBits = 17

// bucketBits is the number of the hash's upper bits that lead to the entries.
// A table with a place for each hash would be read far apart, and slowly.
const bucketBits = 12

// wide is how much of a string is compared with one instruction, in bytes.
const wide = 8

// group is the strings that are searched for with one stride.
type group struct {
	stride int
	// filter has a bit for the hash of each block that matters.
	filter [1 << filterBits / 64]uint64
	// first is where a bucket's entries begin.
	first   [1 << bucketBits]uint32
	entries []entry
	strings []string
	// short: some strings are shorter than wide.
	short bool
}

// entry says: a text that holds block at position i may hold the string at
// position i-offset.
type entry struct {
	// word is wide bytes of the string with the block among them, back bytes
	// behind the word's first one.
	word    uint64
	block   uint32
	literal uint16
	offset  uint16
	back    uint8
	last    bool // of its bucket
}

// hash mixes a block. Its upper bits are the good ones: filterBits of them
// choose the filter's word and the bit in it, bucketBits the bucket.
func hash(b uint32) uint32 { return b * 2654435761 }

func wordAndBit(h uint32) (uint32, uint64) {
	return h >> (32 - filterBits + 6), 1 << (h >> (32 - filterBits) % 64)
}

func bucket(h uint32) uint32 { return h >> (32 - bucketBits) }

// newGroup builds the tables for some of the strings. The shortest decides the
// stride; of longer ones a window of that length is enough, and the window is
// taken where its blocks are rarest.
func newGroup(literals []string, members []int) *group {
	shortest := Max
	for _, i := range members {
		shortest = min(shortest, len(literals[i]))
	}
	g := &group{stride: shortest - block + 1, strings: literals, short: shortest < wide}
	price := newPrices(literals, members)
	byBucket := map[uint32][]entry{}
	for _, i := range members {
		l := literals[i]
		at := price.window(l, g.stride)
		for off := at; off < at+g.stride; off++ {
			e := newEntry(l, off, g.short)
			e.literal = uint16(i)
			h := hash(e.block)
			word, bit := wordAndBit(h)
			g.filter[word] |= bit
			byBucket[bucket(h)] = append(byBucket[bucket(h)], e)
		}
	}
	for _, b := range slices.Sorted(maps.Keys(byBucket)) {
		g.first[b] = uint32(len(g.entries))
		g.entries = append(g.entries, byBucket[b]...)
		g.entries[len(g.entries)-1].last = true
	}
	return g
}

// newEntry is the entry for the block at off in s.
func newEntry(s string, off int, short bool) entry {
	e := entry{block: blockAt(s, off), offset: uint16(off)}
	if !short {
		from := min(off, len(s)-wide)
		e.word, e.back = binary.LittleEndian.Uint64([]byte(s[from:from+wide])), uint8(off-from)
	}
	return e
}

func blockAt(s string, off int) uint32 {
	return binary.LittleEndian.Uint32([]byte(s[off : off+block]))
}

// appendAll looks at one block of text per stride. Every occurrence covers
// exactly one such position within its window, so it is found exactly once.
func (g *group) appendAll(dst []Hit, text []byte) []Hit {
	stride := g.stride
	for i := stride - 1; i+block <= len(text); i += stride {
		b := binary.LittleEndian.Uint32(text[i : i+block : i+block])
		h := hash(b)
		if word, bit := wordAndBit(h); g.filter[word]&bit != 0 {
			dst = g.verify(dst, text, i, b, h)
		}
	}
	return dst
}

// verify compares the text around a block with the strings the block may be
// part of: a word of each first, as most of them differ there.
func (g *group) verify(dst []Hit, text []byte, i int, b, h uint32) []Hit {
	for n := int(g.first[bucket(h)]); ; n++ {
		e := &g.entries[n]
		if g.short && e.block == b || !g.short && hasWord(text, i-int(e.back), e.word) {
			l := g.strings[e.literal]
			start := i - int(e.offset)
			if start >= 0 && start+len(l) <= len(text) && string(text[start:start+len(l)]) == l {
				dst = append(dst, Hit{Literal: int(e.literal), Start: start})
			}
		}
		if e.last {
			return dst
		}
	}
}

func hasWord(text []byte, at int, word uint64) bool {
	return uint(at) < uint(len(text)) && len(text)-at >= wide && binary.LittleEndian.Uint64(text[at:]) == word
}
