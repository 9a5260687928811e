package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// isGarbage says whether a text is no language, and in which way. cutOff: the
// answer was ended by max_tokens, so that its last character may be half.
// matchedStop is the field of that name.
func isGarbage(s string, cutOff bool, matchedStop string) (why string, garbage bool) {
	if strings.Contains(strings.ToLower(matchedStop), "nan happened") {
		return "the server itself found NaN in the logits", true
	}
	s = strings.TrimSpace(s)
	if cutOff {
		s = strings.TrimRight(s, "\uFFFD")
	}
	if s == "" {
		return "", false
	}
	counts := map[rune]int{}
	total, words := 0, 0
	for _, r := range s {
		if unicode.IsSpace(r) {
			continue
		}
		counts[r]++
		total++
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			words++
		}
	}
	if counts[utf8.RuneError] > 0 {
		return "it holds characters that are no text", true
	}
	for _, n := range counts {
		if total >= 8 && n*5 >= total*4 {
			return "one character repeated", true
		}
	}
	if words == 0 {
		return "no letter and no digit", true
	}
	return repeatedWord(s)
}

// markers are what tokenizers and number formatters print for "nothing".
var markers = map[string]bool{"nan": true, "<unk>": true, "[unk]": true, "<pad>": true, "[pad]": true,
	"<|endoftext|>": true, "<s>": true, "</s>": true, "inf": true, "-inf": true}

// repeatedWord finds text that is one word over and over, or special tokens
// only.
func repeatedWord(s string) (why string, garbage bool) {
	s = strings.ToLower(s)
	for marker := range markers {
		if strings.ContainsAny(marker, "<[") {
			s = strings.ReplaceAll(s, marker, " "+marker+" ")
		}
	}
	words := strings.Fields(s)
	special, counts := 0, map[string]int{}
	for _, w := range words {
		if markers[strings.Trim(w, ".,;:!")] {
			special++
		}
		counts[w]++
	}
	if special == len(words) {
		return "special tokens only", true
	}
	for _, n := range counts {
		if len(words) >= 8 && n*5 >= len(words)*4 {
			return "one word repeated", true
		}
	}
	return "", false
}
