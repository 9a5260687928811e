package kernel

import (
	"errors"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// cgroupMount is a mount of a hierarchy of control groups, from
// /proc/self/mountinfo (proc_pid_mountinfo(5)).
type cgroupMount struct {
	version int
	// controllers are those of a version 1 hierarchy.
	controllers []string
	// root is the group that is mounted, by the view of our own cgroup
	// namespace; point is where.
	root, point string
}

// controllersKnown are the version 1 controllers that are read.
var controllersKnown = []string{"cpu", "memory", "freezer"}

// cgroupMounts lists the mounts of hierarchies that are read.
func cgroupMounts(fs procfs.FS) ([]cgroupMount, error) {
	infos, err := fs.GetMounts()
	if err != nil {
		return nil, err
	}
	var mounts []cgroupMount
	for _, i := range infos {
		m := cgroupMount{root: unescape(i.Root), point: unescape(i.MountPoint)}
		switch i.FSType {
		case "cgroup2":
			m.version = 2
		case "cgroup":
			m.version = 1
			for _, c := range controllersKnown {
				if _, ok := i.SuperOptions[c]; ok {
					m.controllers = append(m.controllers, c)
				}
			}
			if len(m.controllers) == 0 {
				continue
			}
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// carries tells whether a mount is of the hierarchy that a line of
// /proc/PID/cgroup is about.
func (m *cgroupMount) carries(g *procfs.Cgroup) bool {
	if g.HierarchyID == 0 || len(g.Controllers) == 0 {
		return m.version == 2
	}
	return m.version == 1 && slices.ContainsFunc(g.Controllers, func(c string) bool { return slices.Contains(m.controllers, c) })
}

var (
	errOutside   = errors.New("the group is outside of what is mounted here (another cgroup namespace)")
	errNoMounted = errors.New("its hierarchy is not mounted here")
)

// below is the path of a group relative to the root of a mount, without a
// leading slash. Paths that begin with "/.." are those of groups outside of our
// own cgroup namespace (cgroup_namespaces(7)): nothing below our mounts stands
// for them, unless the mount itself has such a root.
func (m *cgroupMount) below(group string) (string, error) {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(m.root, "/"))
	if !ok || rest != "" && rest[0] != '/' || strings.ContainsRune(rest, 0) || slices.Contains(strings.Split(rest, "/"), "..") {
		return "", errOutside
	}
	return strings.Trim(rest, "/"), nil
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
