package redact

import (
	"slices"
	"strings"
	"unicode"
)

// weight says how much a name tells that its value is secret.
type weight int

const (
	// harmless names never hide their value.
	harmless weight = iota
	// faint names hide a value that looks like a secret by itself.
	faint
	// likely names hide the value of an option or variable, but in running text
	// only one that looks like a secret: "--token x", not "token: x".
	likely
	// certain names hide every value but the empty ones (None, true).
	certain
)

// Words that decide, by what they say next to "key", "token" and "pass".
var (
	alwaysSecret = []string{"password", "passwd", "passphrase", "secret", "credential", "passcode"}
	// ofAccess makes a key or token one that opens something.
	ofAccess = []string{"api", "access", "secret", "private", "auth", "oauth", "admin", "master", "bearer",
		"encryption", "signing", "license", "client", "account", "service", "ssh", "subscription", "app",
		"hf", "hub", "hugging", "huggingface", "face", "refresh", "session", "id", "github", "gitlab", "ngc",
		"wandb", "x", "deploy", "security", "azure", "openai", "anthropic", "webhook", "personal"}
	// ofText makes a token a piece of text.
	ofText = []string{"eos", "bos", "pad", "unk", "mask", "sep", "cls", "stop", "end", "start", "first", "last",
		"per", "new", "cached", "pending", "max", "min", "num", "output", "input", "prompt", "special", "think",
		"thinking", "reasoning", "image", "audio", "video", "next", "draft", "total", "each", "single", "inter"}
	// ofData makes a key one that finds something, or that everybody may know.
	ofData  = []string{"torch", "cache", "public", "sort", "primary", "foreign", "routing", "partition", "kernel", "module", "param", "graph"}
	ofLogin = []string{"db", "user", "mysql", "redis", "http", "proxy", "smtp", "admin", "ssl", "key", "rabbitmq",
		"root", "my", "require", "login", "ftp", "mongo", "pg", "sql"}
	// ofPlace says that the value is where the secret is, or what it is called.
	ofPlace = []string{"file", "path", "dir", "directory", "name", "env", "var", "header", "type", "mode", "url",
		"uri", "backend", "helper", "sock", "socket", "plugin", "method", "prefix", "location"}
)

// weigh says how much the name of an option, variable or field tells.
func weigh(name string) weight {
	if !holdsStem(name) {
		return harmless
	}
	words := split(name)
	heaviest := harmless
	for i, w := range words {
		before, last := "", i == len(words)-1
		if i > 0 {
			before = words[i-1]
		}
		if i == len(words)-2 && w == "token" && slices.Contains([]string{"value", "string", "str"}, words[i+1]) {
			last = true
		}
		heaviest = max(heaviest, weighWord(w, before, last))
		if w == "key" && !last && strings.HasPrefix(words[i+1], "value") && !slices.Contains(ofAccess, before) {
			return harmless // the key-value cache
		}
	}
	if heaviest > faint && len(words) > 1 && slices.Contains(ofPlace, words[len(words)-1]) {
		return faint
	}
	return heaviest
}

// weighWord weighs one word of a name. last says that nothing follows it.
func weighWord(w, before string, last bool) weight {
	for _, s := range alwaysSecret {
		if strings.Contains(w, s) {
			return certain
		}
	}
	switch {
	case w == "tokens":
		if slices.Contains(ofAccess, before) {
			return certain
		}
		return harmless
	case w == "key" && slices.Contains(ofData, before):
		return harmless
	case w == "key", w == "keys":
		return weighLast(last, slices.Contains(ofAccess, before))
	case strings.HasSuffix(w, "key"), strings.HasSuffix(w, "keys"):
		return weighLast(last, slices.Contains(ofAccess, strings.TrimSuffix(strings.TrimSuffix(w, "s"), "key")))
	case w == "token":
		if slices.Contains(ofText, before) {
			return harmless
		}
		return weighLast(last, slices.Contains(ofAccess, before))
	case strings.HasSuffix(w, "token"):
		return weighLast(last, slices.Contains(ofAccess, strings.TrimSuffix(w, "token")))
	case w == "authorization", w == "cookie", w == "cookies", w == "creds":
		return certain
	case w == "auth", w == "oauth", w == "signature", w == "sig", w == "jwt", w == "bearer", w == "pw":
		return weighLast(last, false)
	case w == "masterauth":
		return certain
	case w == "pat" && last && slices.Contains(ofAccess, before):
		return certain
	case w == "pat" && before == "":
		return weighLast(last, false)
	case w == "pass":
		return weighLast(last, slices.Contains(ofLogin, before)) // "first pass: 3 s"
	case strings.HasSuffix(w, "pass") && slices.Contains(ofLogin, strings.TrimSuffix(w, "pass")):
		return certain
	case w == "pwd" && before == "":
		return weighLast(last, false)
	case w == "pwd" && before != "old":
		return certain
	}
	return harmless
}

func weighLast(last, access bool) weight {
	switch {
	case !last:
		return faint
	case access:
		return certain
	}
	return likely
}

// isSwitch tells names of options that take no value, so that the word after
// them is left alone.
func isSwitch(name string) bool {
	words := split(name)
	return len(words) > 1 && slices.Contains([]string{"enable", "disable", "no", "use", "skip", "require", "allow", "trust"}, words[0])
}

// split cuts a name into lower-case words at punctuation and at changes of
// case: HF_TOKEN, --api-key and adminAPIKey are two, two and three words.
func split(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			afterLower := unicode.IsLower(runes[i-1])
			endsAcronym := unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || endsAcronym {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return words
}
