package process

import (
	"context"
	"strings"
	"testing"
)

func TestAPIKey(t *testing.T) {
	names := KeyNames{Options: []string{"--api-key"}, Variable: "SERVER_KEY"}
	list := names
	list.List = true
	for _, tc := range []struct {
		name      string
		argv, env []string
		names     KeyNames
		key, from string
	}{
		{"next argument", []string{"srv", "--api-key", "k1", "--port", "1"}, nil, names, "k1", "its command line (--api-key)"},
		{"joined, underscore", []string{"srv", "--api_key=k=2"}, nil, names, "k=2", "its command line (--api-key)"},
		{"the last one counts", []string{"srv", "--api-key", "k1", "--api-key", "k2"}, nil, names, "k2", "its command line (--api-key)"},
		{"a list", []string{"srv", "--api-key", "k1,k2"}, nil, list, "k1", "its command line (--api-key)"},
		{"no list", []string{"srv", "--api-key", "k1,k2"}, nil, names, "k1,k2", "its command line (--api-key)"},
		{"environment", []string{"srv"}, []string{"A=1", "SERVER_KEY=k3", "SERVER_KEYS=x"}, names, "k3", "its environment (SERVER_KEY)"},
		{"command line first", []string{"srv", "--api-key", "k1"}, []string{"SERVER_KEY=k3"}, names, "k1", "its command line (--api-key)"},
		{"no value", []string{"srv", "--api-key", "--port", "1"}, nil, names, "", ""},
		{"another option", []string{"srv", "--admin-api-key", "k9", "--api-key-file", "f"}, nil, names, "", ""},
		{"would break the header", []string{"srv", "--api-key", "k1\r\nHost: x"}, nil, names, "", ""},
		{"nothing asked for", []string{"srv", "--api-key", "k1"}, []string{"=k", "X=1"}, KeyNames{}, "", ""},
		{"empty", nil, nil, names, "", ""},
	} {
		dir := procFixture(t, map[string]string{
			"stat": "cpu  1 2 3\ncpu0 1\nbtime 1700000000\n", "7/stat": statLine(7, "srv", 'S', 1, 1, 500),
			"7/cmdline": strings.Join(append(tc.argv, ""), "\x00"), "7/environ": strings.Join(append(tc.env, ""), "\x00"),
		})
		r, err := NewReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if key, from := r.APIKey(context.Background(), 7, tc.names); key != tc.key || from != tc.from {
			t.Errorf("%s: %q from %q, want %q from %q", tc.name, key, from, tc.key, tc.from)
		}
		if key, _ := r.APIKey(context.Background(), 8, tc.names); key != "" {
			t.Errorf("%s: a process that does not exist has the key %q", tc.name, key)
		}
	}
}
