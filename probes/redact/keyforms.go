package redact

import "strings"

// keyForm is a key that its issuer gave a prefix, for scanners to find it.
type keyForm struct {
	mark  string
	more  string // bytes besides letters and digits that a key may hold
	least int    // bytes behind the mark that are enough
	mixed int    // that are enough if they mix letters with digits, or cases
}

const never = 1 << 20

// The forms are those the issuers document.
var forms = []keyForm{
	{"hf_", "", 12, 8}, {"api_org_", "", 16, 8}, // Hugging Face; hf_overrides is an option
	{"sk-", "_-", 20, 10}, {"sk-proj-", "_-", 8, 8}, {"sk-ant-", "_-", 8, 8}, {"sk-or-", "_-", 8, 8}, // OpenAI, Anthropic, OpenRouter
	{"sk-svcacct-", "_-", 8, 8}, {"sk-admin-", "_-", 8, 8},
	{"ghp_", "", 16, 12}, {"gho_", "", 16, 12}, {"ghu_", "", 16, 12}, {"ghs_", "", 16, 12}, {"ghr_", "", 16, 12},
	{"github_pat_", "_", 16, 12},
	{"glpat-", "_-.", 8, 8}, {"gldt-", "_-", 8, 8}, {"glrt-", "_-.", 8, 8}, {"glptt-", "_-", 8, 8}, {"glcbt-", "_-", 8, 8},
	{"AKIA", "", 12, 12}, {"ASIA", "", 12, 12}, {"ABSK", "+/=", 40, 40}, {"bedrock-api-key-", "+/=", 16, 16}, // AWS
	{"nvapi-", "_-", 8, 8}, // NVIDIA
	{"xoxa-", "-", 8, 8}, {"xoxb-", "-", 8, 8}, {"xoxe-", "-", 8, 8}, {"xoxe.", "-.", 8, 8}, {"xoxp-", "-", 8, 8},
	{"xoxr-", "-", 8, 8}, {"xoxs-", "-", 8, 8}, {"xoxd-", "-%", 8, 8}, {"xapp-", "-", 8, 8}, // Slack
	{"AIza", "_-", 30, 20}, {"ya29.", "_-.", 16, 10}, {"GOCSPX-", "_-", 16, 10}, // Google
	{"gsk_", "", 16, 12}, {"xai-", "", 40, 20}, {"pplx-", "", 40, 20}, {"r8_", "", never, 20}, {"fw_", "", never, 16},
	{"csk-", "", never, 20}, {"tgp_v1_", "_-", 16, 12}, {"jina_", "_-", never, 20}, {"tvly-", "_-", 16, 12}, // model providers
	{"lsv2_pt_", "_", 16, 12}, {"lsv2_sk_", "_", 16, 12}, {"wandb_v1_", "_-", 16, 12}, // tracing
	{"npm_", "", 30, 16}, {"pypi-AgE", "_-", 16, 16}, {"dckr_pat_", "_-", 8, 8}, {"dop_v1_", "", 16, 12}, // packages, hosts
	{"sk_live_", "", 8, 8}, {"sk_test_", "", 8, 8}, {"rk_live_", "", 8, 8}, {"whsec_", "+/=", 16, 8}, {"SG.", "_-.", 40, 30},
	{"hvs.", "_-", 16, 12}, {"hvb.", "_-", 16, 12}, {"AGE-SECRET-KEY-", "", 16, 16}, {"tskey-", "-", 16, 10},
	{"sntrys_", "_=+/", 16, 12}, {"PMAK-", "-", 16, 12}, {"shpat_", "", 16, 12}, {"LTAI", "", never, 12},
	{"eyJ", "_-", never, never}, // RFC 7519, see jwtEnd
	// DER of private keys in base64: PKCS #8, PKCS #1 and SEC 1 begin with
	// the same few bytes each, OpenSSH's form with its name.
	{"MC4CAQAwBQYDK2V", "+/=", 16, 16}, {"MHcCAQEE", "+/=", 30, 30}, {"MIGHAgEAMBMG", "+/=", 30, 30}, {"b3BlbnNzaC1rZXk", "+/=", 16, 16},
	{"MIIEvQIBADANBg", "+/=", 16, 16}, {"MIIEvgIBADANBg", "+/=", 16, 16}, {"MIIEowIBAA", "+/=", 16, 16}, {"MIIEpAIBAA", "+/=", 16, 16}, {"MIIEpQIBAA", "+/=", 16, 16},
}

// byFirst are the forms by their first byte.
var byFirst = func() (by [256][]*keyForm) {
	for i := range forms {
		f := &forms[i]
		by[f.mark[0]] = append(by[f.mark[0]], f)
	}
	return by
}()

// keyForms replaces every key with a known prefix.
func keyForms(s string) string {
	var out strings.Builder
	kept := 0
	for i := 0; i < len(s); i++ {
		if byFirst[s[i]] == nil || !beginsWord(s, i) {
			continue
		}
		if end := keyEnd(s, i); end > i {
			out.WriteString(s[kept:i])
			out.WriteString(marker)
			kept, i = end, end-1
		}
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// beginsWord also takes what stands behind \n and %3D for the begin of a word.
func beginsWord(s string, i int) bool {
	if i == 0 || !isWordByte(s[i-1]) {
		return true
	}
	if i >= 2 && s[i-2] == '\\' && (s[i-1] == 'n' || s[i-1] == 't' || s[i-1] == 'r') {
		return true
	}
	return i >= 3 && s[i-3] == '%'
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }

// maxSure is how much of a key decides that it is one.
const maxSure = 128

// keyEnd is the end of the key that begins at i, or i if there is none.
func keyEnd(s string, i int) int {
	for _, f := range byFirst[s[i]] {
		if !strings.HasPrefix(s[i:], f.mark) {
			continue
		}
		from := i + len(f.mark)
		if f.mark == "eyJ" {
			if end := jwtEnd(s, i); end > i {
				return end
			}
			continue
		}
		end := runEnd(s, from, min(len(s), from+maxSure), f.more)
		if n := end - from; n >= f.least || n >= f.mixed && isMixed(s[from:end]) {
			return runEnd(s, end, len(s), f.more)
		}
	}
	return i
}

// jwtEnd is the end of a signed token of three parts, or an encrypted one of
// five, of which one may be empty.
func jwtEnd(s string, i int) int {
	end := runEnd(s, i, min(len(s), i+8*maxSure), "_-")
	next := end + 1
	if next < len(s) && s[next] == '.' {
		next++
	}
	if end-i < 9 || next+4 > len(s) || s[end] != '.' || runEnd(s, next, next+4, "_-") < next+4 {
		return i
	}
	for parts := 1; parts < 5 && end < len(s) && s[end] == '.'; parts++ {
		next := end + 1
		if next < len(s) && s[next] == '.' {
			next++
		}
		if to := runEnd(s, next, len(s), "_-"); to > next {
			end = to
		} else {
			break
		}
	}
	return end
}

// runEnd is the end of the letters, digits and bytes of more in s[from:to].
func runEnd(s string, from, to int, more string) int {
	for from < to && (isLetter(s[from]) || isDigit(s[from]) || strings.IndexByte(more, s[from]) >= 0) {
		from++
	}
	return from
}

// isMixed tells what mixes letters with digits, or capitals with small letters
// within words, from a name.
func isMixed(s string) bool {
	lower, upper, digit := kinds(s)
	return digit > 0 && lower+upper > 0 || lower > 0 && upper > 0
}

func kinds(s string) (lower, upper, digit int) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c):
			digit++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= 'A' && c <= 'Z':
			upper++
		}
	}
	return lower, upper, digit
}
