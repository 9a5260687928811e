package literal

import (
	"encoding/binary"
	"slices"
)

// block is the number of bytes that the filter looks at together.
const block = 4

// filterBits is the size of the filter as a power of two: 2^16 bits are 8 KiB,
// which stays in the first cache.
const filterBits = 16

// group is the strings that are searched for with one stride.
type group struct {
	stride int
	// filter has a bit for the hash of each block that matters.
	filter [1 << filterBits / 64]uint64
	// first is the index of a hash's first entry in entries, plus one.
	first   [1 << filterBits]uint32
	entries []entry
	strings []string
}

// entry says: a text that holds block at position i may hold the string at
// position i-offset.
type entry struct {
	block   uint32
	literal uint16
	offset  uint16
	last    bool // of its hash
}

func hash(b uint32) uint32 {
	return b * 2654435761 >> (32 - filterBits)
}

// newGroup builds the tables for some of the strings. The shortest decides the
// stride; of longer ones a window of that length is enough, and the window is
// taken where its blocks are rarest.
func newGroup(literals []string, members []int) *group {
	shortest := Max
	for _, i := range members {
		shortest = min(shortest, len(literals[i]))
	}
	g := &group{stride: shortest - block + 1, strings: literals}
	price := newPrices(literals, members)
	byHash := map[uint32][]entry{}
	for _, i := range members {
		l := literals[i]
		at := price.window(l, g.stride)
		for off := at; off < at+g.stride; off++ {
			b := blockAt(l, off)
			h := hash(b)
			byHash[h] = append(byHash[h], entry{block: b, literal: uint16(i), offset: uint16(off)})
		}
	}
	hashes := make([]uint32, 0, len(byHash))
	for h := range byHash {
		hashes = append(hashes, h)
	}
	slices.Sort(hashes)
	for _, h := range hashes {
		g.filter[h/64] |= 1 << (h % 64)
		g.first[h] = uint32(len(g.entries) + 1)
		g.entries = append(g.entries, byHash[h]...)
		g.entries[len(g.entries)-1].last = true
	}
	return g
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
		if g.filter[h/64]&(1<<(h%64)) != 0 {
			dst = g.verify(dst, text, i, b, h)
		}
	}
	return dst
}

// verify compares the text around a block with the strings the block may be
// part of.
func (g *group) verify(dst []Hit, text []byte, i int, b, h uint32) []Hit {
	for n := int(g.first[h]) - 1; ; n++ {
		e := &g.entries[n]
		if e.block == b {
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
