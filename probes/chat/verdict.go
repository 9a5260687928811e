package chat

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/whyhang/whyhang/probes/evidence"
)

// verdict is what one exchange comes to. again: the plainer question may
// change it.
type verdict struct {
	is    evidence.CheckVerdict
	says  string
	again bool
}

// judge says what the last exchange is worth. The cases are tried in this
// order: refusals by status, broken transport, garbage, emptiness, the right
// answer, a cut-off one, a wrong one.
func (k *checker) judge(e evidence.Exchange) verdict {
	if v, ok := k.judgeStatus(e); ok {
		return v
	}
	text := k.raw.content + "\n" + k.raw.reasoning
	cutOff := e.FinishReason == "length"
	switch e.ErrorType {
	case "", tooLong, noTokens:
	case notOpenAI:
		return verdict{is: evidence.CheckNoEndpoint, says: e.Error}
	default:
		return verdict{is: evidence.CheckError, says: e.Error}
	}
	if why, garbage := isGarbage(text, cutOff, e.MatchedStop); garbage {
		return verdict{is: evidence.CheckGarbage, says: fmt.Sprintf("it answered %s: %s", k.Client.quote(text, 60), why)}
	}
	if strings.TrimFunc(text, unpronounced) == "" {
		// All tokens may have been thoughts that the server does not show.
		return verdict{is: evidence.CheckEmpty, says: empty(e), again: cutOff}
	}
	// The answer proper counts first, the thoughts only without one.
	for _, part := range []string{k.raw.content, k.raw.reasoning} {
		if isRight(part) {
			return verdict{is: evidence.CheckPass, says: fmt.Sprintf("it answered %s in %s", k.around(part), after(e.E2ELMS)) + unstoppable(e)}
		}
	}
	if cutOff && k.reasons(e) {
		return verdict{is: evidence.CheckPassTruncated,
			says: fmt.Sprintf("it reasons readably (%s) and was cut off at %d tokens after %s", k.Client.quote(text, 60), e.MaxTokens, after(e.E2ELMS))}
	}
	return verdict{is: evidence.CheckWrong, again: true, says: fmt.Sprintf("it answered %s", k.Client.quote(text, 60)) + unstoppable(e)}
}

// judgeAgain judges the answer to the plainer question. If the server did not
// answer that one, what it did is what counts.
func (k *checker) judgeAgain(e evidence.Exchange, first verdict) verdict {
	v := k.judge(e)
	switch v.is {
	case evidence.CheckPass, evidence.CheckPassTruncated:
		v.says += ", to the plainer question"
	case evidence.CheckWrong:
		v.says = first.says + " and, asked more plainly, " + strings.TrimPrefix(v.says, "it answered ")
	default:
		v.says = first.says + "; asked more plainly, " + v.says
	}
	return v
}

// judgeStatus judges what was refused with a status.
func (k *checker) judgeStatus(e evidence.Exchange) (verdict, bool) {
	body := k.raw.refusal
	says := func(is evidence.CheckVerdict, text string) (verdict, bool) { return verdict{is: is, says: text}, true }
	switch status := e.HTTPStatus; {
	case status == 0 || status == 200:
		return verdict{}, false
	case status == 401 || status == 403:
		if k.Client.APIKey == "" {
			return says(evidence.CheckUnauthorised, fmt.Sprintf("it answers HTTP %d to a request without an API key", status))
		}
		if from := k.Client.KeyFrom; from != "" {
			return says(evidence.CheckUnauthorised, fmt.Sprintf("it answers HTTP %d to the API key of %s", status, from))
		}
		return says(evidence.CheckUnauthorised, fmt.Sprintf("it answers HTTP %d to the API key it was given", status))
	case status == 429, status == 503 && aboutLoad.MatchString(body):
		return says(evidence.CheckBusy, e.Error)
	case status == 503 && aboutLoading.MatchString(body):
		return says(evidence.CheckLoading, e.Error)
	case status == 503 && k.check.HealthStatus == 503:
		return says(evidence.CheckLoading, e.Error+", and the same to GET /health")
	case status/100 == 3:
		return says(evidence.CheckNoEndpoint, fmt.Sprintf("it redirects POST /v1/chat/completions to %s", k.Client.quote(k.raw.redirect, 120)))
	case unknownModel(e, k.raw):
		return says(evidence.CheckNoEndpoint, fmt.Sprintf("it does not know the model %s; %s", k.Client.quote(k.model, 120), k.offers()))
	case status == 404, status == 405, status == 501, aboutChat.MatchString(body):
		return says(evidence.CheckNoEndpoint, "POST /v1/chat/completions: "+e.Error)
	}
	return says(evidence.CheckError, e.Error)
}

// onTopic are words that a model uses when it thinks about the question.
var onTopic = regexp.MustCompile(`(?i)2\s*\+\s*2|\btwo\b|\badd(ition|ing)?\b|\bsum\b|\bmath|arithmetic|\buser\b|question|\bask(s|ed|ing)?\b|one word|\banswer|问|加`)

// reasons says whether a cut-off answer is readable thought about the
// question that has not come to another result.
func (k *checker) reasons(e evidence.Exchange) bool {
	text := k.raw.content + "\n" + k.raw.reasoning
	if contradicts(text) >= 0 || !readable(text) {
		return false
	}
	thinks := strings.TrimSpace(k.raw.reasoning) != "" || strings.Contains(k.raw.content, "<think>")
	return thinks || onTopic.MatchString(text)
}

// readable: mostly letters, and more than one word of them.
func readable(s string) bool {
	letters, others, words := 0, 0, 0
	inWord, ideographs := false, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters++
			if r >= 0x2E80 {
				ideographs++ // written without spaces
			} else if !inWord {
				words++
			}
			inWord = true
			continue
		case !unicode.IsSpace(r) && r != '\'':
			others++
		}
		inWord = r == '\''
	}
	return letters > others && words+ideographs/2 >= 3
}

// unpronounced are characters that are no answer.
func unpronounced(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u200b' }

func empty(e evidence.Exchange) string {
	if e.FinishReason == "" {
		return "it ended its answer without any text"
	}
	return fmt.Sprintf("it ended its answer without any text, finish_reason %q", e.FinishReason)
}

func unstoppable(e evidence.Exchange) string {
	if e.ErrorType == tooLong {
		return fmt.Sprintf(", and did not stop at %d tokens", e.MaxTokens)
	}
	return ""
}

// around quotes the part of an answer where the 4 stands.
func (k *checker) around(s string) string {
	const before, behind, whole = 40, 20, 80
	// Cleaned first: a secret cut in two would not be known as one.
	s = strings.Join(strings.Fields(k.Client.clean(s, maxKept)), " ")
	at := saysFour(s)
	if len(s) <= whole || at < 0 {
		return k.Client.quote(s, whole)
	}
	from, to := at, min(at+behind, len(s))
	if at > before {
		if space := strings.IndexByte(s[at-before:at], ' '); space >= 0 {
			from = at - before + space + 1
		}
	} else {
		from = 0
	}
	part := strings.ToValidUTF8(s[from:to], "")
	if from > 0 {
		part = "… " + part
	}
	if to < len(s) {
		part += " …"
	}
	return strconv.Quote(part)
}

func after(ms float64) string {
	return seconds(time.Duration(ms * float64(time.Millisecond)))
}
