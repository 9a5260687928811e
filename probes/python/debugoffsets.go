package python

import (
	"encoding/binary"
	"fmt"
)

// Since 3.13 _PyRuntime begins with a description of the structures
// (_Py_DebugOffsets, Include/internal/pycore_debug_offsets.h): a cookie, the
// version, whether the build is free-threaded, then groups of offsets of
// 64 bits. What stands in the groups changes with every minor version.
const (
	debugCookie = "xdebugpy"
	debugHead   = 24
	// HeadBytes is how much of _PyRuntime holds all of it that is used; 3.10
	// has no more than that in all.
	HeadBytes = 960
)

// Offsets that whyhang does not use stand for themselves in the lists.
const unused = ""

// debugLists name the offsets in their order, up to the last that is used.
var debugLists = map[int][]string{
	13: {
		unused, unused, "runtimeInterpreters",
		unused, "interpreterID", "interpreterNext", "interpreterThreads", unused, unused, unused, unused, "interpreterGIL", "gil", "gilEnabled", "gilLocked", "gilHolder",
		"sizeofThread", unused, "threadNext", "threadInterpreter", "threadFrame", "threadID", "threadNativeID", unused, unused,
		"sizeofFrame", "framePrevious", "frameCode", "frameInstr", "frameLocals", "frameOwner",
		"sizeofCode", "codeFile", "codeName", "codeQualName", "codeLines", "codeFirstLine", unused, unused, unused, "codeBytes",
		unused, "objectType",
		unused, "typeName", unused, unused,
		unused, unused, unused, // tuple
		unused, unused, unused, // list
		unused, unused, unused, // dict
		unused, unused, // float
		unused, unused, unused, // int
		unused, "objectSize", "bytesData",
		"sizeofString", "stringState", "stringLength", "stringASCII",
	},
	14: {
		unused, unused, "runtimeInterpreters",
		unused, "interpreterID", "interpreterNext", "interpreterThreads", unused, unused, unused, unused, unused, "interpreterGIL", "gil", "gilEnabled", "gilLocked", "gilHolder", unused, unused,
		"sizeofThread", unused, "threadNext", "threadInterpreter", "threadFrame", "threadID", "threadNativeID", unused, unused,
		"sizeofFrame", "framePrevious", "frameCode", "frameInstr", "frameLocals", "frameOwner", unused, "frameBytecode",
		"sizeofCode", "codeFile", "codeName", "codeQualName", "codeLines", "codeFirstLine", unused, unused, unused, "codeBytes", "codeCopies",
		unused, "objectType",
		unused, "typeName", unused, unused,
		unused, unused, unused, // tuple
		unused, unused, unused, // list
		unused, unused, unused, unused, // set
		unused, unused, unused, // dict
		unused, unused, // float
		unused, unused, unused, // int
		unused, "objectSize", "bytesData",
		"sizeofString", "stringState", "stringLength", "stringASCII",
	},
	15: {
		unused, unused, "runtimeInterpreters",
		unused, "interpreterID", "interpreterNext", "interpreterThreads", unused, unused, unused, unused, unused, "interpreterGIL", "gil", "gilEnabled", "gilLocked", "gilHolder", unused, unused,
		"sizeofThread", unused, "threadNext", "threadInterpreter", "threadFrame", unused, unused, unused, "threadID", "threadNativeID", unused, unused, unused, unused, unused, unused,
		unused, // exception stack item
		"sizeofFrame", "framePrevious", "frameCode", "frameInstr", "frameLocals", "frameOwner", unused, "frameBytecode",
		"sizeofCode", "codeFile", "codeName", "codeQualName", "codeLines", "codeFirstLine", unused, unused, unused, "codeBytes", "codeCopies",
		unused, "objectType",
		unused, "typeName", unused, unused, unused, unused,
		unused, unused, // heap type
		unused, unused, unused, // tuple
		unused, unused, unused, // list
		unused, unused, unused, unused, // set
		unused, unused, unused, // dict
		unused, unused, // float
		unused, unused, unused, // int
		unused, "objectSize", "bytesData",
		"sizeofString", "stringState", "stringLength", "stringASCII",
	},
}

// describedVersion reads the version off the head of _PyRuntime; false if that
// does not describe itself.
func describedVersion(head []byte) (Version, bool) {
	if len(head) < debugHead || string(head[:8]) != debugCookie {
		return Version{}, false
	}
	v := VersionOfHex(wordAt(head, 8))
	v.FreeThreaded = wordAt(head, 16) == 1
	return v, v.known()
}

// describedLayout reads the layout off the head of _PyRuntime.
func describedLayout(v Version, head []byte) (layout, error) {
	names, ok := debugLists[v.Minor]
	if !ok || len(head) < debugHead+8*len(names) {
		return layout{}, fmt.Errorf("the layout of CPython %s is not known", v)
	}
	at := make(map[string]uint64, len(names))
	for i, name := range names {
		at[name] = binary.NativeEndian.Uint64(head[debugHead+8*i:])
	}
	l := layout{
		version:             v,
		runtimeInterpreters: at["runtimeInterpreters"],
		interpreterNext:     at["interpreterNext"],
		interpreterID:       at["interpreterID"],
		interpreterThreads:  at["interpreterThreads"],
		interpreterGIL:      at["interpreterGIL"],
		// These are offsets in the interpreter, which holds one GIL itself.
		gilLocked:         at["gilLocked"] - at["gil"],
		gilHolder:         at["gilHolder"] - at["gil"],
		gilEnabled:        at["gilEnabled"],
		threadNext:        at["threadNext"],
		threadInterpreter: at["threadInterpreter"],
		threadID:          at["threadID"],
		threadNativeID:    at["threadNativeID"],
		threadFrame:       at["threadFrame"],
		framePrevious:     at["framePrevious"],
		frameCode:         at["frameCode"],
		frameInstr:        at["frameInstr"],
		frameLocals:       at["frameLocals"],
		frameOwner:        at["frameOwner"],
		frameBytecode:     at["frameBytecode"],
		codeFile:          at["codeFile"],
		codeName:          at["codeName"],
		codeQualName:      at["codeQualName"],
		codeLines:         at["codeLines"],
		codeFirstLine:     at["codeFirstLine"],
		codeBytes:         at["codeBytes"],
		codeCopies:        at["codeCopies"],
		objectType:        at["objectType"],
		objectSize:        at["objectSize"],
		typeName:          at["typeName"],
		bytesData:         at["bytesData"],
		stringState:       at["stringState"],
		stringLength:      at["stringLength"],
		stringASCII:       at["stringASCII"],
		stringCompact:     at["sizeofString"] - 8, // a pointer less
		sizeofThread:      at["sizeofThread"],
		sizeofFrame:       at["sizeofFrame"],
		sizeofCode:        at["sizeofCode"],
	}
	if v.FreeThreaded && v.Minor >= 14 {
		l.stateKindShift = 8 // the bits before it are a number of their own
	}
	l.derive()
	if !l.plausible() {
		return layout{}, fmt.Errorf("CPython %s describes itself in a way that cannot be", v)
	}
	return l, nil
}
