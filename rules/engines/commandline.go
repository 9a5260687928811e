package engines

import (
	"strconv"
	"strings"
)

// CommandLine is an argv with its options looked up by name.
type CommandLine struct {
	Argv []string
}

// Value is the value of the first of these options that is present, in the
// forms "--name value", "--name=value" and, for single letters, "-n value".
// The bool is false if none is present; an option without a value has "".
func (c CommandLine) Value(names ...string) (string, bool) {
	for i, arg := range c.Argv {
		option, v, valued := strings.Cut(arg, "=")
		option = dashed(option)
		for _, name := range names {
			if option != dashed(name) {
				continue
			}
			if valued {
				return v, true
			}
			if i+1 < len(c.Argv) && !isOption(c.Argv[i+1]) {
				return c.Argv[i+1], true
			}
			return "", true
		}
	}
	return "", false
}

// Int is Value as a number; the default if absent or no number.
func (c CommandLine) Int(otherwise int, names ...string) int {
	if v, ok := c.Value(names...); ok {
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	}
	return otherwise
}

// After is the first word that follows one of these words and is no option:
// the model in "vllm serve MODEL".
func (c CommandLine) After(words ...string) (string, bool) {
	for i, arg := range c.Argv {
		for _, w := range words {
			if arg == w && i+1 < len(c.Argv) && !isOption(c.Argv[i+1]) {
				return c.Argv[i+1], true
			}
		}
	}
	return "", false
}

// dashed writes an option as vLLM and llama.cpp read it, which take --a_b for
// --a-b (vllm/utils/argparse_utils.py, common/arg.cpp).
func dashed(option string) string {
	if !strings.HasPrefix(option, "--") {
		return option
	}
	return strings.ReplaceAll(option, "_", "-")
}

// isOption tells an option from a value: negative numbers are values.
func isOption(s string) bool {
	if !strings.HasPrefix(s, "-") || s == "-" {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}
