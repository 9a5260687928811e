// Package evidence holds the types of everything whyhang has seen of a
// server: one Snapshot, which can be saved, moved to another machine and
// judged again there.
//
// The package may not do anything. It has no behaviour, imports the standard
// library only, and everybody may import it.
//
// Conventions, relied on by every reader of a snapshot:
//
//   - A number has its unit in its JSON name (rss_anon_bytes, took_ms).
//   - A pointer that is nil means "not known"; why it is not known stands in
//     Process.Unread or in the ProbeRun of the probe that should have known.
//     A zero never stands for "not known".
//   - Everything that came from the target (argv, log lines, thread names,
//     HTTP bodies) was redacted when it was collected, so that a snapshot may
//     be posted. It is still hostile text: renderers sanitise it.
//   - Readers accept unknown fields and refuse an unknown major schema.
package evidence
