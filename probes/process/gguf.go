package process

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// This file runs in the child.

// The format is ggml's docs/gguf.md: magic, version, number of tensors and of
// key-value pairs, the pairs, the descriptions of the tensors, padding, data.

// maxGGUFHeader bounds a header: the largest part is the vocabulary, some
// megabytes.
const maxGGUFHeader = 256 << 20

// ggmlType is a type of tensor: so many values in a block of so many bytes
// (ggml.h enum ggml_type, ggml-common.h block_*).
type ggmlType struct {
	name          string
	values, bytes uint64
}

var ggmlTypes = map[uint32]ggmlType{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24},
	8: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 36}, 10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144},
	13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292}, 16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74},
	18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82},
	23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2}, 26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8},
	29: {"IQ1_M", 256, 56}, 30: {"BF16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17},
}

// ggufScalars are the sizes of the value types of the pairs; 8 is a string, 9
// an array.
var ggufScalars = map[uint32]uint64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

const (
	ggufString  = 8
	ggufArray   = 9
	ggufNesting = 4
)

// ggufReader reads on and remembers where it is and what went wrong first.
type ggufReader struct {
	in  *bufio.Reader
	pos uint64
	err error
}

// readGGUF reads a GGUF header of version 2 or 3 from its first byte. What was
// read until an error came is in the header.
func readGGUF(r io.Reader) (modelHeader, error) {
	g := &ggufReader{in: bufio.NewReaderSize(io.LimitReader(r, maxGGUFHeader), 64<<10)}
	var h modelHeader
	g.skip(4) // the magic, seen by the caller
	version := g.u32()
	switch {
	case g.err != nil:
		return h, cutOff(g.err)
	case version != 2 && version != 3:
		// 1 has shorter numbers, and a big-endian file reads as a huge one.
		return h, fmt.Errorf("GGUF version %d is not read", version)
	}
	tensors, pairs := g.u64(), g.u64()
	alignment := uint64(32)
	for i := uint64(0); i < pairs && g.err == nil; i++ {
		key := g.text(64)
		kind := g.u32()
		if key == "general.alignment" && kind == 4 {
			if a := uint64(g.u32()); a > 0 && a <= 1<<20 {
				alignment = a
			}
			continue
		}
		g.value(kind, 0)
	}
	var end uint64
	for i := uint64(0); i < tensors && g.err == nil; i++ {
		var last uint64
		if last = g.tensor(&h); g.err == nil {
			end = max(end, last)
			h.Tensors++
		}
	}
	h.Expected = g.pos
	if g.err != nil {
		return h, cutOff(g.err)
	}
	data := (g.pos + alignment - 1) / alignment * alignment
	if end > 0 && end <= math.MaxInt64-data {
		h.Expected = data + end
	}
	return h, nil
}

// tensor reads one description, and gives where its data end, counted from the
// beginning of all data. Of a type that is not known only the beginning counts.
func (g *ggufReader) tensor(h *modelHeader) (end uint64) {
	g.text(0)
	n := g.u32()
	if n > 8 {
		g.fail(errors.New("a tensor has more than 8 dimensions"))
	}
	values := uint64(1)
	for range n {
		d := g.u64()
		if d != 0 && values > math.MaxInt64/d {
			g.fail(errors.New("a tensor is impossibly large"))
		}
		if g.err != nil {
			return 0
		}
		values *= d
	}
	kind, offset := g.u32(), g.u64()
	t, known := ggmlTypes[kind]
	if !known {
		t = ggmlType{"other", 1, 0}
	}
	blocks := values / t.values
	if t.bytes > 0 && blocks > math.MaxInt64/t.bytes || offset > math.MaxInt64-blocks*t.bytes {
		g.fail(errors.New("a tensor is impossibly large"))
	}
	if g.err != nil {
		return 0
	}
	h.add(t.name, blocks*t.bytes)
	return offset + blocks*t.bytes
}

// value skips a value.
func (g *ggufReader) value(kind uint32, depth int) {
	switch size, scalar := ggufScalars[kind]; {
	case g.err != nil:
	case scalar:
		g.skip(size)
	case kind == ggufString:
		g.text(0)
	case kind == ggufArray && depth < ggufNesting:
		of, n := g.u32(), g.u64()
		if size, scalar := ggufScalars[of]; scalar {
			if n > maxGGUFHeader {
				g.fail(io.ErrUnexpectedEOF)
				return
			}
			g.skip(n * size)
			return
		}
		for i := uint64(0); i < n && g.err == nil; i++ {
			g.value(of, depth+1)
		}
	default:
		g.fail(fmt.Errorf("a value of type %d", kind))
	}
}

// text reads a string: it keeps it if it is no longer than keep.
func (g *ggufReader) text(keep uint64) string {
	n := g.u64()
	if n > keep {
		g.skip(n)
		return ""
	}
	b := make([]byte, n)
	g.read(b)
	return string(b)
}

func (g *ggufReader) u32() uint32 {
	var b [4]byte
	g.read(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (g *ggufReader) u64() uint64 {
	var b [8]byte
	g.read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (g *ggufReader) read(b []byte) {
	if g.err != nil {
		return
	}
	n, err := io.ReadFull(g.in, b)
	g.pos += uint64(n)
	g.fail(err)
}

func (g *ggufReader) skip(n uint64) {
	if g.err != nil {
		return
	}
	if n > maxGGUFHeader {
		g.fail(io.ErrUnexpectedEOF)
		return
	}
	done, err := g.in.Discard(int(n))
	g.pos += uint64(done)
	g.fail(err)
}

func (g *ggufReader) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}
