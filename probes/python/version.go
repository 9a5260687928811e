package python

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
)

// Version is that of a CPython, without its patch level: within one minor
// version the layouts do not change.
type Version struct {
	Major, Minor int
	FreeThreaded bool
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// known says whether a version was found at all.
func (v Version) known() bool { return v.Major != 0 }

// atLeast says whether v is 3.minor or later.
func (v Version) atLeast(minor int) bool { return v.Major == 3 && v.Minor >= minor }

// VersionOfHex takes the value of the symbol Py_Version (3.11 and later) or of
// PY_VERSION_HEX apart: 0x030b07f0 is 3.11.7 (Include/patchlevel.h).
func VersionOfHex(hex uint64) Version {
	v := Version{Major: int(hex >> 24 & 0xff), Minor: int(hex >> 16 & 0xff)}
	if hex>>32 != 0 || v.Major != 3 {
		return Version{}
	}
	return v
}

// Names that tell a version: libpython3.10.so.1.0, python3.13t, and extension
// modules such as _ssl.cpython-310-x86_64-linux-gnu.so.
var (
	programName   = regexp.MustCompile(`^(?:lib)?python(\d)\.(\d{1,2})([a-z]*)(?:\.so.*|\.\d+)?$`)
	extensionName = regexp.MustCompile(`\.cpython-(\d)(\d{1,2})([a-z]*)-`)
)

// VersionOfName reads the version out of the name of a file that a process has
// mapped; not known if the name has none.
func VersionOfName(file string) Version {
	name := path.Base(file)
	found := programName.FindStringSubmatch(name)
	if found == nil {
		found = extensionName.FindStringSubmatch(name)
	}
	if found == nil {
		return Version{}
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return Version{Major: major, Minor: minor, FreeThreaded: found[3] == "t" || found[3] == "td"}
}
