package serverlog

// maxPrefix is the length up to which the prefix of a line is remembered, in
// bytes.
const maxPrefix = 128

// class tells digits from what makes the digits after it part of a name.
var class = func() (c [256]byte) {
	for b := range c {
		switch {
		case b >= '0' && b <= '9':
			c[b] = isNumber
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			c[b] = isAlpha | names
		case b == '_', b == '=':
			c[b] = names
		}
	}
	return c
}()

const (
	isNumber = 1 << iota
	isAlpha
	names
)

// named says whether the digits that begin at prefix[i] belong to a name: TP0,
// Worker_TP3, VllmWorker-0, rank=2. Other numbers differ from line to line.
func named(prefix []byte, i int) bool {
	return i > 0 && class[prefix[i-1]]&names != 0 ||
		i > 1 && prefix[i-1] == '-' && class[prefix[i-2]]&isAlpha != 0
}

// rankKey is prefix with the numbers that differ from line to line taken out.
// Lines of one process have few such keys.
func rankKey(dst, prefix []byte) []byte {
	for i := 0; i < len(prefix); {
		from := i
		for i < len(prefix) && class[prefix[i]]&isNumber == 0 {
			i++
		}
		dst = append(dst, prefix[from:i]...)
		from = i
		for i < len(prefix) && class[prefix[i]]&isNumber != 0 {
			i++
		}
		switch {
		case from == i:
		case named(prefix, from):
			dst = append(dst, prefix[from:i]...)
		default:
			dst = append(dst, '0')
		}
	}
	return dst
}
