package engines

import (
	"regexp"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// line is a known log line in the short form of the engine files: phase, kind
// and name make the ID "engine.phase.name".
type line struct {
	phase evidence.Phase
	kind  evidence.Kind
	name  string
	// literal is in every such line; pattern, "" for none, must match as well.
	literal, pattern string
	yes, no          lines
}

// lines are example lines.
type lines []string

// Short names for the tables.
const (
	anyPhase     evidence.Phase = "" // failures can happen in every phase
	starting                    = evidence.PhaseStarting
	download                    = evidence.PhaseDownload
	communicator                = evidence.PhaseCommunicator
	weights                     = evidence.PhaseWeights
	convert                     = evidence.PhaseConvert
	kernelBuild                 = evidence.PhaseKernelBuild
	graphCompile                = evidence.PhaseGraphCompile
	autotune                    = evidence.PhaseAutotune
	graphCapture                = evidence.PhaseGraphCapture
	warmUp                      = evidence.PhaseWarmUp
	ready                       = evidence.PhaseReady
	serving                     = evidence.PhaseServing
	stopping                    = evidence.PhaseStopping

	launch      = evidence.KindLaunch
	begin       = evidence.KindBegin
	mark        = evidence.KindMark
	progress    = evidence.KindProgress
	end         = evidence.KindEnd
	isReady     = evidence.KindReady
	activity    = evidence.KindActivity
	heartbeat   = evidence.KindHeartbeat
	retry       = evidence.KindRetry
	stall       = evidence.KindStall
	fatal       = evidence.KindFatal
	consequence = evidence.KindConsequence
	shutdown    = evidence.KindShutdown
)

// known makes the lines of an engine signatures.
func known(engine string, all ...line) []evidence.Signature {
	signatures := make([]evidence.Signature, 0, len(all))
	for _, l := range all {
		phase := string(l.phase)
		if phase == "" {
			phase = "any"
		}
		signatures = append(signatures, evidence.Signature{
			ID: engine + "." + phase + "." + l.name, Engine: engine, Phase: l.phase, Kind: l.kind,
			Literal: l.literal, Pattern: l.pattern, Examples: l.yes, Near: l.no,
		})
	}
	return signatures
}

// counting gives lines their series (evidence.Signature.Series), by the end of
// the ID ("serving.decode").
func counting(signatures []evidence.Signature, series map[string]string) []evidence.Signature {
	for i := range signatures {
		_, name, _ := strings.Cut(signatures[i].ID, ".")
		signatures[i].Series = series[name]
	}
	return signatures
}

// spelled gives an option's distortion under each of its spellings.
func spelled(says, effect string, flags ...string) []Distortion {
	var all []Distortion
	for _, f := range flags {
		all = append(all, Distortion{Flag: f, Says: says, Effect: effect})
	}
	return all
}

// startOnly marks what slows down the start alone.
func startOnly(all []Distortion) []Distortion {
	for i := range all {
		all[i].StartOnly = true
	}
	return all
}

// like gives a distortion under each of its spellings where the value matches.
func like(pattern, says, effect string, flags ...string) []Distortion {
	all := spelled(says, effect, flags...)
	for i := range all {
		all[i].Like = regexp.MustCompile(pattern)
	}
	return all
}

// set gives a distortion for each of these variables.
func set(says, effect string, variables ...string) []Distortion {
	var all []Distortion
	for _, v := range variables {
		all = append(all, Distortion{Env: v, Says: says, Effect: effect})
	}
	return all
}
