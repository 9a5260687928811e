// Package process reads what /proc shows of a server's processes: who is in
// the tree, what each thread does, which counters move, how far the weight
// files have come, and which locks threads sleep on.
//
//	find.go, tree.go, describe.go   who is there, and what does not move of it
//	look.go, threads.go             one pass over what moves
//	waits.go, words.go              lock words, read between two looks
//	lockowner.go, owners.go         whom a lock names, and which thread that is
//	mutex.go, robust.go, priorityinherit.go, rwlock.go, join.go,
//	muslmutex.go, muslthread.go     the layouts of locks
//	orphan.go, sharedmemory.go      owners that have ended; IDs of other namespaces
//	blocked.go, pipes.go, unixsockets.go, children.go, filelocks.go,
//	descriptorscan.go               waits outside futexes, and who can end them
//	callers.go, nativesite.go       the code that waits
//	asleep.go                       since when
//	python.go, pythonelf.go         CPython inside the process (package python)
//	files.go, fileschild.go         the target's file systems, in a child
//	modelfiles.go, listweights.go, missingparts.go, modelheaders.go,
//	safetensors.go, gguf.go         which files the model is, and whether they are whole
//	storage.go                      threads that wait for a file system, and which
//	each.go                         deadlines, one process at a time
//
// The package only observes. It may not judge, trace, signal (but for the
// harmless signal 0 that tells a hidden process from none) or write to the
// target. It may not touch the target's file systems from whyhang's own
// process: a dead mount would keep whyhang from ending. It reads memory of the
// target only where no page can come from such a file system (memory.go).
//
// Every reader of kernel text has a parser of its own that takes hostile
// bytes: thread names, paths and titles belong to the target.
package process
