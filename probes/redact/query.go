package redact

import "strings"

// inQueries are names that carry secrets in the query of a URL and mean
// something harmless elsewhere. Of presigned URLs: AWS, Google and CloudFront
// sign with Signature, Policy and Key-Pair-Id; Azure with sig; several clouds
// with sign. The other fields of a presigned URL (expiry, version, date) tell
// why a download failed and open nothing.
var inQueries = map[string]bool{
	"code": true, "policy": true, "key-pair-id": true, "sig": true, "sign": true, "__sign": true,
	"session": true, "sessionid": true, "session_id": true, "sid": true, "ticket": true, "hmac": true,
	"hdnts": true, "hdnea": true, "pw": true, "pat": true, "jwt": true, "state_token": true,
}

// queryWeight weighs the name that begins at before and ends at the separator
// i as a parameter of a URL; harmless if it is none.
func queryWeight(s, name string, before, i int) weight {
	if s[i] == ':' || before == 0 {
		return harmless
	}
	switch s[before-1] {
	case '?', '&', ';':
	case '#': // the fragment of a URL, not "#token" of a statistics line
		if before < 2 || isSpace(s[before-2]) {
			return harmless
		}
	default: // %3F and %26 in an encoded URL
		if s[i] != '%' {
			return harmless
		}
	}
	lower := strings.ToLower(name)
	if inQueries[lower] {
		if lower == "code" {
			return likely // a number is a status
		}
		return certain
	}
	if s[before-1] == ';' {
		return harmless
	}
	if weigh(name) >= likely {
		return certain
	}
	return harmless
}
