package serverlog

import "github.com/whyhang/whyhang/probes/redact"

// redactText removes secrets from text of the target before it is kept.
func redactText(s string) string { return redact.String(s) }
