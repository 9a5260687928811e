package serverlog

import "encoding/binary"

// maxPiece is how much of a line on either side of a known string is looked
// at: a line of gigabytes must cost no more than one of kilobytes.
const maxPiece = 64 << 10

// separates says whether a byte ends a piece of a line. Progress bars rewrite
// themselves with a carriage return; a hole in the file, left by a writer whose
// file was truncated, reads as NULs.
func separates(b byte) bool { return b <= '\r' && (b == '\n' || b == '\r' || b == 0) }

// pieceAround is the piece of buf that holds position at.
func pieceAround(buf []byte, at int) (start, end int) {
	return pieceStart(buf, max(0, at-maxPiece), at), pieceEnd(buf, at, min(len(buf), at+maxPiece))
}

// pieceStart is the position behind the last separator in buf[from:at], or
// from.
func pieceStart(buf []byte, from, at int) int {
	for at > from {
		if at-from >= 8 && !hasLow(binary.LittleEndian.Uint64(buf[at-8:])) {
			at -= 8
			continue
		}
		if separates(buf[at-1]) {
			return at
		}
		at--
	}
	return from
}

// pieceEnd is the position of the first separator in buf[at:to], or to.
func pieceEnd(buf []byte, at, to int) int {
	for at < to {
		if to-at >= 8 && !hasLow(binary.LittleEndian.Uint64(buf[at:])) {
			at += 8
			continue
		}
		if separates(buf[at]) {
			return at
		}
		at++
	}
	return to
}

// hasLow says whether one of eight bytes is below 0x0e, as all separators are:
// the subtraction borrows into the top bit of such a byte, which was not set
// before.
func hasLow(x uint64) bool {
	const each = 0x0101010101010101
	return (x-each*0x0e)&^x&(each*0x80) != 0
}
