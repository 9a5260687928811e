package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxSignatures limits the file in bytes.
const maxSignatures = 16 << 20

// LoadSignatures reads more log lines to know: a JSON list of objects with the
// fields of evidence.Signature. Unknown fields are refused, as they are typos.
// Errors name the file, the line and the field.
func LoadSignatures(path string) ([]evidence.Signature, error) {
	f, err := openInput(path)
	if err != nil {
		return nil, fmt.Errorf("--signatures %s: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSignatures))
	if err != nil {
		return nil, fmt.Errorf("--signatures %s: %w", path, err)
	}
	signatures, at, err := decodeSignatures(b)
	if err != nil {
		line := 1 + bytes.Count(b[:min(int(at), len(b))], []byte("\n"))
		return nil, fmt.Errorf("--signatures %s, line %d: %w", path, line, err)
	}
	return signatures, nil
}

// decodeSignatures also gives the offset at which it failed.
func decodeSignatures(b []byte) ([]evidence.Signature, int64, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, d.InputOffset(), errors.New("expected a list: [ {…}, … ]")
	}
	var all []evidence.Signature
	for d.More() {
		var s evidence.Signature
		at := d.InputOffset()
		if err := d.Decode(&s); err != nil {
			return nil, d.InputOffset(), err
		}
		if err := checkSignature(&s); err != nil {
			return nil, at + 1, err
		}
		all = append(all, s)
	}
	if _, err := d.Token(); err != nil {
		return nil, d.InputOffset(), err
	}
	return all, 0, nil
}

func checkSignature(s *evidence.Signature) error {
	switch {
	case s.ID == "":
		return errors.New(`field "id" is missing`)
	case len(s.Literal) < 4:
		return fmt.Errorf("%s: field \"literal\" %q is shorter than 4 bytes", s.ID, s.Literal)
	case !knownKinds[s.Kind]:
		return fmt.Errorf("%s: field \"kind\" %q is none of launch begin mark progress end ready activity heartbeat retry stall fatal consequence shutdown", s.ID, s.Kind)
	}
	p, err := regexp.Compile(s.Pattern)
	if err != nil {
		return fmt.Errorf("%s: field \"pattern\": %w", s.ID, err)
	}
	for _, example := range s.Examples {
		if !bytes.Contains([]byte(example), []byte(s.Literal)) || !p.MatchString(example) {
			return fmt.Errorf("%s: field \"examples\": %q does not match", s.ID, example)
		}
	}
	return nil
}

var knownKinds = map[evidence.Kind]bool{
	evidence.KindLaunch: true, evidence.KindBegin: true, evidence.KindMark: true, evidence.KindProgress: true,
	evidence.KindEnd: true, evidence.KindReady: true, evidence.KindActivity: true, evidence.KindHeartbeat: true,
	evidence.KindRetry: true, evidence.KindStall: true, evidence.KindFatal: true, evidence.KindConsequence: true,
	evidence.KindShutdown: true,
}
