package python

// maxLine bounds the line numbers that are believed.
const maxLine = 10_000_000

func lineWithin(line int) int {
	if line < 0 || line > maxLine {
		return 0
	}
	return line
}

// lineOf310 finds the line of an instruction (number in units of two bytes) in
// a co_linetable of 3.10: pairs of bytes, how many bytes of instructions, and
// how many lines further; -128 for instructions without a line (PEP 626,
// Objects/lnotab_notes.txt). 0: not known.
func lineOf310(table []byte, first, unit int) int {
	if unit < 0 {
		return lineWithin(first)
	}
	line, end := first, 0
	for ; len(table) >= 2; table = table[2:] {
		end += int(table[0])
		delta := int(int8(table[1]))
		if delta != -128 {
			line += delta
		}
		if 2*unit < end {
			if delta == -128 {
				return 0
			}
			return lineWithin(line)
		}
	}
	return 0
}

// Kinds of entries of the location table of 3.11 and later
// (Objects/locations.md); the kinds before are short forms without a change of
// line.
const (
	oneLine0   = 10 // and 11, 12: the line advances by kind-10, two bytes follow
	noColumns  = 13 // the line follows
	longForm   = 14 // line, end line, column and end column follow
	noLocation = 15
)

// lineOf finds the line of an instruction in a co_linetable of 3.11 or later.
// 0: it has none, or is not in the table.
func lineOf(table []byte, first, unit int) int {
	line, end := first, 0
	for i := 0; i < len(table); {
		head := table[i]
		i++
		if head&0x80 == 0 {
			return 0 // every entry begins with that bit
		}
		end += int(head&7) + 1
		kind := int(head >> 3 & 15)
		switch {
		case kind == noLocation:
		case kind == longForm || kind == noColumns:
			var delta int
			delta, i = signedVarint(table, i)
			line += delta
			if kind == longForm {
				for range 3 {
					_, i = varint(table, i)
				}
			}
		case kind >= oneLine0:
			line += kind - oneLine0
			i += 2
		default:
			i++
		}
		if unit < end {
			if kind == noLocation {
				return 0
			}
			return lineWithin(line)
		}
	}
	return 0
}

// varint reads a number of six bits a byte, the lowest first; a seventh bit
// says that another byte follows.
func varint(table []byte, i int) (value, next int) {
	for shift := 0; i < len(table); shift += 6 {
		b := table[i]
		i++
		if shift < 48 {
			value |= int(b&63) << shift
		}
		if b&64 == 0 {
			break
		}
	}
	return value, i
}

// signedVarint has the sign in the lowest bit.
func signedVarint(table []byte, i int) (value, next int) {
	value, next = varint(table, i)
	if value&1 != 0 {
		return -(value >> 1), next
	}
	return value >> 1, next
}
