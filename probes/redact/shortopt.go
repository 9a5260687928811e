package redact

import (
	"path"
	"strings"
)

// shortOption is a short option of one command whose value is, or holds, a
// secret. Short options of servers mean something else in each of them, so
// they count only behind the name of the command.
type shortOption struct {
	flag string
	// login values are user:password, of which the user may stay.
	login bool
	// joined values follow the flag in the same argument.
	joined bool
	// unsure values count only if they cannot be an address or a path: -k is
	// the key of the openai client, and of curl a switch before the address.
	unsure bool
}

var login = []shortOption{{flag: "-u", login: true}, {flag: "--user", login: true}, {flag: "-U", login: true},
	{flag: "--proxy-user", login: true}, {flag: "-b"}, {flag: "--cookie"}, {flag: "--oauth2-bearer"}, {flag: "-k", unsure: true}}

var commands = map[string][]shortOption{
	"curl":      login,
	"wget":      {{flag: "-k", unsure: true}},
	"openai":    {{flag: "-k"}},
	"http":      {{flag: "-a", login: true}, {flag: "--auth", login: true}, {flag: "-k", unsure: true}},
	"https":     {{flag: "-a", login: true}, {flag: "--auth", login: true}, {flag: "-k", unsure: true}},
	"hey":       {{flag: "-a", login: true}},
	"ab":        {{flag: "-A", login: true}, {flag: "-P", login: true}, {flag: "-C"}},
	"redis-cli": {{flag: "-a"}},
	"login":     {{flag: "-p"}}, // of docker and podman
	"sshpass":   {{flag: "-p"}, {flag: "-p", joined: true}},
	"mysql":     {{flag: "-p", joined: true}},
}

// shortOptions are those of the command that a command line has named last.
type shortOptions struct{ known []shortOption }

// see takes notice of an argument that may be the command.
func (o *shortOptions) see(arg string) {
	if strings.HasPrefix(arg, "-") {
		return
	}
	if known, ok := commands[path.Base(arg)]; ok {
		o.known = known
	}
}

// takes says whether argv[i] is an option with a secret behind it.
func (o *shortOptions) takes(argv []string, i int) bool {
	for _, s := range o.known {
		if s.flag == argv[i] && !s.joined && i+1 < len(argv) && (!isOption(argv[i+1]) || !s.unsure) && !isEmpty(argv[i+1]) {
			return !s.unsure || !strings.ContainsAny(argv[i+1], ".:/") && argv[i+1] != "localhost"
		}
	}
	return false
}

// joins says whether the secret stands right behind the flag, as in -psecret.
func (o *shortOptions) joins(arg string) bool {
	for _, s := range o.known {
		if s.joined && len(arg) > len(s.flag) && strings.HasPrefix(arg, s.flag) {
			return arg[2:] != marker
		}
	}
	return false
}

// hide keeps the user of user:password and of user=password.
func (o *shortOptions) hide(value string) string {
	if i := strings.IndexAny(value, ":="); i > 0 {
		return value[:i+1] + marker
	}
	return marker
}
