package redact

import (
	"strings"
	"testing"
)

// planted are secrets in the shapes and places that are known for sure,
// whatever stands before and after them in the text.
var planted = []struct{ text, secret string }{
	{"hf_Zq9Zq9Zq9Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"sk-proj-Zq9Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"nvapi-Zq9Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"ghp_Zq9Zq9Zq9Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"--api-key Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"--admin-api-key=Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"HF_TOKEN=Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"password: Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{`{"api_key": "Zq9Zq9Zq9", "n": 1}`, "Zq9Zq9Zq9"},
	{`{\"api_key\": \"Zq9Zq9Zq9\"}`, "Zq9Zq9Zq9"},
	{"{'client_secret': ['Zq9Zq9Zq9', 'Zq9Zq9Zq9'], 'n': 1}", "Zq9Zq9Zq9"},
	{"https://h/p?a=1&token=Zq9Zq9Zq9&X-Amz-Signature=Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"redis://u:Zq9Zq9Zq9@h:1/0", "Zq9Zq9Zq9"},
	{"Authorization: Bearer Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"Cookie: a=b; c=Zq9Zq9Zq9", "Zq9Zq9Zq9"},
	{"-----BEGIN PRIVATE KEY-----\n" + body1 + "\n" + body2 + "\n-----END PRIVATE KEY-----", "SECRET"},
	{body1 + "\n" + body2 + "\n" + body3, "SECRET"},
}

func FuzzPlanted(f *testing.F) {
	for i, s := range []string{"", "a", "password:\"a\\", "x={\"y\": [", "it's", "https://h/?", "-----BEGIN PRIVATE KEY-----", "token='", "[[{{", "\\n", "key: \n  - a", "%3D"} {
		f.Add(s, s, i)
	}
	f.Fuzz(func(t *testing.T, before, after string, which int) {
		p := planted[uint(which)%uint(len(planted))]
		if strings.Contains(before+after, p.secret) {
			return
		}
		text := before + "\n" + p.text + "\n" + after
		for _, got := range []string{String(text), Argv([]string{"x", text})[1], Env("X", text)} {
			if strings.Contains(got, p.secret) {
				t.Fatalf("%q stays in %q\nof %q", p.secret, got, text)
			}
		}
	})
}

// What is redacted already must not change any more: a snapshot may be read
// and written again.
func FuzzTwice(f *testing.F) {
	for _, tc := range inTexts {
		f.Add(tc.text)
	}
	for _, tc := range inArguments {
		f.Add(strings.Join(tc.argv, "\x00"))
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := String(s)
		if twice := String(once); twice != once {
			t.Fatalf("%q\nbecame %q\nand then %q", s, once, twice)
		}
		argv := strings.Split(s, "\x00")
		first := Argv(argv)
		second := Argv(first)
		for i := range first {
			if first[i] != second[i] {
				t.Fatalf("%q\nbecame %q\nand then %q", argv, first, second)
			}
		}
	})
}
