package python

import "github.com/whyhang/whyhang/probes/evidence"

// gil is one global interpreter lock (struct _gil_runtime_state,
// Include/internal/pycore_gil.h).
type gil struct {
	at, holder uint64 // holder is a PyThreadState, or was one
	locked     bool
	switches   uint64
	nstid      int
}

// readGIL reads the GIL of an interpreter. Until 3.11 all share one; since
// then each may have its own.
func (p *Interpreters) readGIL(interpreter uint64) {
	at := p.symbols.Runtime + p.l.runtimeGIL
	if p.l.interpreterGIL != 0 {
		var err error
		if at, err = p.mem.word(interpreter + p.l.interpreterGIL); err != nil {
			p.unread("the GIL: " + err.Error())
			return
		}
		if at == 0 {
			return
		}
	}
	for i := range p.gils {
		if p.gils[i].at == at {
			return
		}
	}
	// One read, so that what belongs together is from one moment.
	raw := make([]byte, p.l.gilCond)
	if err := p.mem.readNow(at, raw); err != nil {
		p.unread("the GIL: " + err.Error())
		return
	}
	if p.l.version.FreeThreaded && intAt(raw, 0) == 0 {
		return // not enabled: nobody ever takes it
	}
	p.gils = append(p.gils, gil{
		at:       at,
		holder:   wordAt(raw, p.l.gilHolder),
		locked:   intAt(raw, p.l.gilLocked) == 1, // -1 before it is made
		switches: wordAt(raw, p.l.gilSwitches),
	})
}

// nameHolders finds the threads that the holders are, among the living: the
// last holder may have ended. The main interpreter's GIL, the last one found,
// is that of the process.
func (p *Interpreters) nameHolders(states []threadState) {
	for i := range p.gils {
		g := &p.gils[i]
		for j := range states {
			if states[j].at == g.holder {
				g.nstid = states[j].nstid
			}
		}
		p.Process.GIL = &evidence.PythonGIL{
			Cond: hexAddr(g.at + p.l.gilCond), Locked: g.locked, SwitchNumber: g.switches, HolderNSTID: g.nstid,
		}
	}
}

// gilOf is the GIL whose condition variable a futex word lies in; nil if none.
func (p *Interpreters) gilOf(addr uint64) *gil {
	for i := range p.gils {
		if from := p.gils[i].at + p.l.gilCond; addr >= from && addr < from+sizeofCond {
			return &p.gils[i]
		}
	}
	return nil
}
