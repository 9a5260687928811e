package chat

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The two questions. The first is the one of the incident that whyhang exists
// for; small models stumble over its second sentence, so the plainer one
// follows before an answer counts as wrong.
const (
	question      = "What is 2+2? Reply in one word."
	plainQuestion = "What is 2+2?"
)

// saysFour finds a 4, or "four", that stands as a number of its own: not the
// digit of another number, not an operand ("2 + 4"), not denied ("not 4"). at
// is where the last one begins; -1 if there is none.
func saysFour(s string) (at int) {
	at = -1
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '4' || r == '４':
			if to := i + n + zeros(s[i+n:]); isNumber(s[:i], s[to:]) && !isListMark(s, i, to) {
				at = i
			}
		case (r == 'f' || r == 'F') && len(s)-i >= 4 && strings.EqualFold(s[i:i+4], "four"):
			if isWord(s[:i], s[i+4:]) {
				at = i
			}
		}
		i += n
	}
	return at
}

// zeros is the length of a ".0", ".00" … that does not change the number.
func zeros(after string) int {
	if !strings.HasPrefix(after, ".0") {
		return 0
	}
	return 1 + len(after[1:]) - len(strings.TrimLeft(after[1:], "0"))
}

// isNumber says whether a 4 between these texts stands alone.
func isNumber(before, after string) bool {
	prev := lastRune(before)
	next, size := utf8.DecodeRuneInString(after)
	behind, _ := utf8.DecodeRuneInString(after[min(size, len(after)):])
	switch {
	case joins(prev), joins(next), next == '%', next == '°':
		return false
	case (prev == '.' || prev == ',' || prev == ':' || prev == '/') && endsInDigit(before[:len(before)-1]):
		return false // 2.4, 1,4
	case (next == '.' || next == ',' || next == ':' || next == '/') && unicode.IsDigit(behind):
		return false // 4.5, 4,000, 4:30
	case next == '_' && joins(behind), prev == '_' && joins(lastRune(before[:len(before)-1])):
		return false // 4_k, part_4
	case isMinus(prev):
		return false // -4, GPT-4, 2-4
	case isMinus(next) && (unicode.IsDigit(behind) || unicode.IsLetter(behind)):
		return false // 4-2, 4-bit
	}
	return !isOperand(before, after) && !denied(before)
}

// isWord says whether "four" between these texts is a number of its own.
func isWord(before, after string) bool {
	prev := lastRune(before)
	next, _ := utf8.DecodeRuneInString(after)
	if joins(prev) || joins(next) || isMinus(prev) || isMinus(next) || denied(before) || isOperand(before, after) {
		return false // fourteen, twenty-four, four-bit
	}
	words := strings.Fields(strings.ToLower(cut(strings.TrimLeft(after, " "), 24)))
	if strings.HasPrefix(after, " ") && len(words) > 0 && slices.Contains([]string{"hundred", "thousand", "million", "billion", "point", "plus", "times", "minus"}, strings.Trim(words[0], ".,")) {
		return false
	}
	tens := []string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "point", "plus", "times", "minus"}
	return !slices.Contains(tens, lastWord(before))
}

// joins says whether r makes one word or number with a digit beside it.
// Scripts without spaces between words do not.
func joins(r rune) bool {
	return unicode.IsNumber(r) || unicode.IsLetter(r) && r < 0x2E80
}

func isMinus(r rune) bool { return r == '-' || r == '−' || r == '–' }

func endsInDigit(s string) bool { return unicode.IsDigit(lastRune(s)) }

func lastRune(s string) rune {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r
}

// isOperand: the number takes part in a calculation and is not its result.
func isOperand(before, after string) bool {
	const operators = "+*×/^÷"
	left := strings.TrimRight(before, " ")
	if op, n := utf8.DecodeLastRuneInString(left); strings.ContainsRune(operators, op) || isMinus(op) {
		if endsInDigit(strings.TrimRight(left[:len(left)-n], " *")) {
			return true
		}
	}
	right := strings.TrimLeft(after, " ")
	op, n := utf8.DecodeRuneInString(right)
	if !strings.ContainsRune(operators, op) && !isMinus(op) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(right[n:], " "))
	return unicode.IsDigit(next)
}

// denied: the words before say that it is not this.
func denied(before string) bool {
	return slices.Contains([]string{"not", "isn't", "never", "minus", "negative", "than"}, lastWord(before))
}

// lastWord is the last word of s in lower case, without quotes and stars.
func lastWord(s string) string {
	s = s[max(0, len(s)-32):]
	words := strings.Fields(strings.ToLower(strings.TrimRight(s, " \"'`*_(")))
	if len(words) == 0 {
		return ""
	}
	return strings.Trim(words[len(words)-1], "\"'`*_(")
}

// isListMark: "4." at the beginning of a line, after a line that begins with
// "3.".
func isListMark(s string, from, to int) bool {
	start := strings.LastIndexByte(s[:from], '\n') + 1
	if strings.TrimLeft(s[start:from], " *") != "" || to+1 >= len(s) || s[to] != '.' && s[to] != ')' || s[to+1] != ' ' {
		return false
	}
	return listThree.MatchString(s[:from])
}

var (
	listThree = regexp.MustCompile(`(?m)^[ *]*3[.)] `)
	goesOn    = regexp.MustCompile(`(?i)^(plus|and|words?|sentences?|times)\b`)
	// result is a statement of what 2+2 is, or of the answer.
	result = regexp.MustCompile(`(?i)(?:2\s*\+\s*2|two plus two|the answer|answer)\s*(?:=|is|equals|is equal to|makes|:)\s*:?\s*["'*$(]*(-?\d+(?:\.\d+)?|one|two|three|five|six|seven|eight|nine|ten|twenty-two)\b`)
)

// contradicts finds the last statement of another result than 4; -1 if there
// is none. A number that goes on as a calculation ("the answer is 2+2") is no
// result.
func contradicts(s string) (at int) {
	at = -1
	for _, m := range result.FindAllStringSubmatchIndex(s, -1) {
		number, after := s[m[2]:m[3]], strings.TrimLeft(s[m[3]:], " \"'*")
		if number == "4" || strings.HasPrefix(number, "4.") && strings.Trim(number[2:], "0") == "" {
			continue
		}
		next, _ := utf8.DecodeRuneInString(after)
		if strings.ContainsRune("+*×/^÷", next) || isMinus(next) || goesOn.MatchString(after) {
			continue
		}
		at = m[2]
	}
	return at
}

// isRight says whether the text answers 4: it says so, and says nothing else
// after it.
func isRight(s string) bool {
	at := saysFour(s)
	return at >= 0 && at >= contradicts(s)
}
