package python

// handler is an entry of a co_exceptiontable (3.11 and later,
// Objects/exception_handling_notes.txt): where an exception goes that comes
// from instructions start up to end, and how deep the value stack is then. All
// in code units; depth in values.
type handler struct {
	start, end, target, depth int
}

// handlerOf finds the entry that holds an instruction. Each has one at most.
func handlerOf(table []byte, unit int) (handler, bool) {
	for i := 0; i < len(table); {
		var h handler
		var size, depth int
		// An entry is four numbers of six bits a byte, the highest first.
		h.start, i = bigVarint(table, i)
		size, i = bigVarint(table, i)
		h.target, i = bigVarint(table, i)
		depth, i = bigVarint(table, i)
		h.end, h.depth = h.start+size, depth>>1
		if unit >= h.start && unit < h.end {
			return h, true
		}
		if h.start > unit { // they are sorted
			break
		}
	}
	return handler{}, false
}

// bigVarint reads a number with the highest six bits first. The seventh bit of
// a byte says that another follows; the eighth marks the start of an entry.
func bigVarint(table []byte, i int) (value, next int) {
	for n := 0; i < len(table); n++ {
		b := table[i]
		i++
		if n < 8 {
			value = value<<6 | int(b&63)
		}
		if b&64 == 0 {
			break
		}
	}
	return value, i
}
