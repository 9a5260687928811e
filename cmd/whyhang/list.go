package main

import (
	"context"
	"errors"
)

// listServers is `whyhang` without arguments.
func listServers(context.Context, world, *options) error {
	return errors.New("listing the servers of this host is not in this version; give a PID (pgrep -af 'sglang|vllm|llama' finds one), or try: whyhang demo")
}
