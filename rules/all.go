package rules

import (
	"github.com/whyhang/whyhang/rules/broken"
	"github.com/whyhang/whyhang/rules/deadlocked"
	"github.com/whyhang/whyhang/rules/loading"
	"github.com/whyhang/whyhang/rules/ready"
	"github.com/whyhang/whyhang/rules/rule"
	"github.com/whyhang/whyhang/rules/stalled"
	"github.com/whyhang/whyhang/rules/unresponsive"
	"github.com/whyhang/whyhang/rules/warning"
)

// All is every rule, in the order in which they are evaluated and explained.
// The order does not decide anything: precedence does (judge.go).
func All() []*rule.Rule {
	return []*rule.Rule{
		&broken.OOMKilled,
		&broken.DeadChild,
		&broken.MissingHead,
		&broken.LeftBehind,
		&ready.Answers,
		&ready.ByItsWord,
		&ready.ByCounters,
		&deadlocked.LockCycle,
		&deadlocked.PipeCycle,
		&deadlocked.GILCycle,
		&deadlocked.OrphanedLock,
		&deadlocked.LostWakeup,
		&deadlocked.CommunicatorSpin,
		&deadlocked.StaleLockFile,
		&deadlocked.RankMismatch,
		&deadlocked.MissingRank,
		&loading.WeightsRead,
		&loading.WeightsConvert,
		&loading.GraphCompile,
		&loading.KernelBuild,
		&loading.WaitsForBuild,
		&loading.Download,
		&loading.PhaseMoves,
		&loading.SaysSoItself,
		&loading.WaitingForPeer,
		&stalled.Paused,
		&stalled.Frozen,
		&stalled.Starved,
		&stalled.Storage,
		&stalled.LogPipe,
		&stalled.GILHeld,
		&stalled.DownloadStalled,
		&stalled.PeerUnreachable,
		&unresponsive.WrongAnswer,
		&unresponsive.GarbageAnswer,
		&unresponsive.GPUKernelStuck,
		&unresponsive.AcceptStuck,
		&unresponsive.EngineStuck,
		&unresponsive.NoAnswer,
		&unresponsive.WrongOwner,
		&broken.DiskFull,
		&broken.PortTaken,
		&broken.FatalError,
		&stalled.NoMovement,
		&warning.DistortingFlag,
		&warning.SharedPort,
		&warning.OtherTraffic,
		&warning.UnderATool,
		&warning.CPUHeldDown,
		&warning.GPUHeldDown,
		&warning.DriverSilent,
		&warning.GetsTooLittle,
		&warning.FullDisk,
		&warning.IncompleteModel,
	}
}

// ByID is the rule with that ID, nil if there is none.
func ByID(id rule.ID) *rule.Rule {
	for _, r := range All() {
		if r.ID == id {
			return r
		}
	}
	return nil
}
