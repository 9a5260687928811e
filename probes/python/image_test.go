package python

import (
	"encoding/binary"
	"errors"
	"testing"
)

// image is a made-up memory with one interpreter in it: one thread with two
// frames, of which the inner one waits for a lock in a `with` block of another.
type image struct {
	l     layout
	bytes []byte
}

// The memory begins at imageBase; things in it stand at fixed places.
const (
	imageBase = 0x100000
	imageSize = 0x22000

	atRuntime     = imageBase
	atInterpreter = imageBase + 0x0800
	atGIL         = imageBase + 0x1000
	atThread      = imageBase + 0x1200
	atCFrame      = imageBase + 0x1600
	atFrame       = imageBase + 0x1800
	atOuter       = imageBase + 0x1a00
	atCode        = imageBase + 0x1c00
	atFile        = imageBase + 0x2000
	atName        = imageBase + 0x2100
	atLines       = imageBase + 0x2200
	atExceptions  = imageBase + 0x2300
	atLockType    = imageBase + 0x2400
	atTypeName    = imageBase + 0x2800
	atLock        = imageBase + 0x2900
	atSemaphore   = imageBase + 0x2a00
	atMethod      = imageBase + 0x2b00
	atNames       = imageBase + 0x2d00 // an empty tuple
	atOther       = imageBase + 0x2c00 // room for another thread
	atReference   = imageBase + 0x2f80
	atSleeper     = imageBase + 0x20000 // far from all objects, as stacks are
	atStack       = imageBase + 0x4000
	codeType      = imageBase + 0x7000
	builtinType   = imageBase + 0x7100
	methodType    = imageBase + 0x7200

	imageTID = 4242
)

func (m *image) Read(addr uint64, buf []byte) error {
	if addr < imageBase || addr-imageBase > uint64(len(m.bytes)) || uint64(len(m.bytes))-(addr-imageBase) < uint64(len(buf)) {
		return errors.New("not mapped")
	}
	copy(buf, m.bytes[addr-imageBase:])
	return nil
}

func (m *image) word(at, value uint64) {
	binary.NativeEndian.PutUint64(m.bytes[at-imageBase:], value)
}

func (m *image) int(at uint64, value int32) {
	binary.NativeEndian.PutUint32(m.bytes[at-imageBase:], uint32(value))
}

func (m *image) text(at uint64, s string) {
	m.word(at+m.l.stringLength, uint64(len(s)))
	m.int(at+m.l.stringState, int32(1|8|16)<<m.l.stateKindShift)
	copy(m.bytes[at+m.l.stringASCII-imageBase:], s)
}

func (m *image) byteString(at uint64, b []byte) {
	m.word(at+m.l.objectSize, uint64(len(b)))
	copy(m.bytes[at+m.l.bytesData-imageBase:], b)
}

// newImage makes one for a version: 10 to 15. Those that describe themselves
// have the offsets of 3.12, with those of the frame pointer moved.
func newImage(tb testing.TB, minor int) *image {
	tb.Helper()
	m := &image{bytes: make([]byte, imageSize)}
	l, ok := layoutOf(Version{Major: 3, Minor: minor})
	if !ok {
		l = m.describe(tb, minor)
	}
	m.l = l
	m.word(atRuntime+l.runtimeInterpreters, atInterpreter)
	gil := uint64(atGIL)
	if l.interpreterGIL == 0 {
		gil = atRuntime + l.runtimeGIL
	} else {
		m.word(atInterpreter+l.interpreterGIL, atGIL)
	}
	m.word(gil+l.gilHolder, atThread)
	m.int(gil+l.gilLocked, 1)
	m.word(gil+l.gilSwitches, 7)

	m.word(atInterpreter+l.interpreterThreads, atThread)
	m.word(atThread+l.threadInterpreter, atInterpreter)
	m.word(atThread+l.threadID, atStack)
	switch {
	case l.threadNativeID != 0:
		m.word(atThread+l.threadNativeID, imageTID)
	default:
		m.word(atStack, atStack)
		m.word(atStack+16, atStack)
		m.int(atStack+tidInTCBAMD64, imageTID)
	}
	if l.threadCFrame != 0 {
		m.word(atThread+l.threadCFrame, atCFrame)
		m.word(atCFrame+l.cframeFrame, atFrame)
	} else {
		m.word(atThread+l.threadFrame, atFrame)
	}
	m.word(atFrame+l.framePrevious, atOuter)
	for _, f := range []uint64{atFrame, atOuter} {
		m.word(f+l.frameCode, atCode)
		if l.frameInstr != 0 {
			m.word(f+l.frameInstr, atCode+l.codeBytes+2*20)
		} else {
			m.int(f+l.frameLasti, 20)
		}
	}
	m.word(atCode+l.objectType, codeType)
	m.word(atCode+l.objectSize, 110)
	m.word(atCode+l.codeFile, atFile)
	m.word(atCode+l.codeName, atName)
	if l.codeQualName != 0 {
		m.word(atCode+l.codeQualName, atName)
	}
	m.int(atCode+l.codeFirstLine, 1)
	m.word(atCode+l.codeLines, atLines)
	m.word(atCode+l.codeNames, atNames)
	m.text(atFile, "/srv/app.py")
	m.text(atName, "serve")
	table := lineTables[1].table
	if minor == 10 {
		table = lineTables[0].table
	}
	m.byteString(atLines, bytesOf(tb, table))
	if l.codeExceptions != 0 {
		m.int(atCode+l.codeLocals, 2)
		m.word(atCode+l.codeExceptions, atExceptions)
		m.byteString(atExceptions, bytesOf(tb, exceptionTables[0].table))
		// The handler at 49 is that of a try, the one at 77 of the with.
		opcodes := withOpcodesOf[minor]
		handler := atCode + l.codeBytes + 2*77 - imageBase
		m.bytes[handler], m.bytes[handler+2] = opcodes.push, opcodes.exit
		value := uint64(atMethod)
		if minor >= 14 {
			value = atLock | 1
		}
		m.word(atOuter+l.frameLocals+8*2, value)
	}
	m.word(atMethod+l.objectType, builtinType)
	m.word(atMethod+l.methodSelf, atLock)
	m.word(atLock+l.objectType, atLockType)
	m.word(atLock+l.sizeofHead(), atSemaphore)
	m.word(atLockType+l.typeName, atTypeName)
	if l.threadSentinel != 0 {
		m.word(atReference+l.weakrefObject, atLock) // which nobody has yet
	}
	copy(m.bytes[atTypeName-imageBase:], "_thread.lock\x00")
	return m
}

// describe writes the description of a layout like that of 3.12.
func (m *image) describe(tb testing.TB, minor int) layout {
	tb.Helper()
	l := layout312
	at := map[string]uint64{
		"runtimeInterpreters": 1000, "interpreterID": 8, "interpreterThreads": 72, "interpreterGIL": 384,
		"gil": 512, "gilLocked": 512 + 16, "gilHolder": 512 + 8,
		"sizeofThread": 288, "threadNext": 8, "threadInterpreter": 16, "threadFrame": 72, "threadID": 136, "threadNativeID": 144,
		"sizeofFrame": 80, "framePrevious": 8, "frameInstr": 56, "frameLocals": 72, "frameOwner": 70,
		"sizeofCode": 200, "codeFile": 112, "codeName": 120, "codeQualName": 128, "codeLines": 136, "codeFirstLine": 68, "codeBytes": 192,
		"objectType": 8, "typeName": 24, "objectSize": 16, "bytesData": 32,
		"sizeofString": l.stringCompact + 8, "stringState": 32, "stringLength": 16, "stringASCII": 40,
	}
	copy(m.bytes, debugCookie)
	m.word(imageBase+8, 3<<24|uint64(minor)<<16|0x07f0)
	for i, name := range debugLists[minor] {
		m.word(imageBase+debugHead+8*uint64(i), at[name])
	}
	v, ok := describedVersion(m.bytes[:HeadBytes])
	if !ok || v.Minor != minor {
		tb.Fatalf("described as %+v", v)
	}
	l, err := describedLayout(v, m.bytes[:HeadBytes])
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// symbols are where the image has its data.
func (m *image) symbols() Symbols {
	return Symbols{Runtime: atRuntime, CodeType: codeType, Builtin: builtinType, Method: methodType}
}
