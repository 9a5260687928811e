package facts

import (
	"slices"
	"sort"

	"github.com/whyhang/whyhang/probes/evidence"
)

// index notes who waits for each thread.
func (g *WaitGraph) index() {
	g.behind = make(map[int][]int, len(g.Waiters))
	for tid, n := range g.Waiters {
		if n.ForTID != 0 && n.Lost == "" {
			g.behind[n.ForTID] = append(g.behind[n.ForTID], tid)
		}
	}
}

// Behind are the threads outside a circle whose wait ends in it, through
// however many others.
func (g *WaitGraph) Behind(circle []int) []int {
	seen := make(map[int]bool, len(circle))
	for _, tid := range circle {
		seen[tid] = true
	}
	var behind []int
	next := slices.Clone(circle)
	for len(next) > 0 {
		tid := next[len(next)-1]
		next = next[:len(next)-1]
		for _, t := range g.behind[tid] {
			if !seen[t] {
				seen[t] = true
				behind = append(behind, t)
				next = append(next, t)
			}
		}
	}
	sort.Ints(behind)
	return behind
}

// circlesIn finds the circles among the waits of the set that name their
// wakers; waits that name nobody are no part of one. A wait for any thread of
// some processes leads to each thread of them that waits by name itself. Of
// waits that are tangled (strongly connected) one circle is given, a shortest
// through the lowest TID.
func (g *WaitGraph) circlesIn(set map[int]bool, grade Proof) [][]int {
	nodes := make([]int, 0, len(set))
	owners := make(map[int]int, len(set)) // who each waits for, where that is one thread
	byPID := map[int][]int{}
	for tid := range set {
		if n, _ := g.at(g.Waiters[tid], grade); n.ForTID != 0 || len(n.Procs) > 0 {
			nodes = append(nodes, tid)
			byPID[n.PID] = append(byPID[n.PID], tid)
			if n.ForTID != 0 && n.Lost == "" {
				owners[tid] = n.ForTID
			}
		}
	}
	sort.Ints(nodes)
	if len(owners) == len(nodes) {
		return circlesOfOwners(nodes, owners)
	}
	for _, tids := range byPID {
		sort.Ints(tids)
	}
	in := make(map[int]bool, len(nodes))
	for _, tid := range nodes {
		in[tid] = true
	}
	// A node is a TID, or a process as its negative PID: that keeps the number
	// of edges linear.
	next := func(node int) []int {
		if node < 0 {
			return byPID[-node]
		}
		n, _ := g.at(g.Waiters[node], grade)
		if n.Lost == "" && n.ForTID != 0 {
			if in[n.ForTID] {
				return []int{n.ForTID}
			}
			return nil
		}
		to := make([]int, 0, len(n.Procs))
		for _, pid := range n.Procs {
			// A process may adopt children while it waits, so it is one of its own
			// wakers; that is no circle.
			if n.On != string(evidence.BlockChild) || pid != n.PID {
				to = append(to, -pid)
			}
		}
		return to
	}
	// Of the threads of a process that could end a wait, those that wait for a
	// lock tell more than the one that waits for the very process which waits for
	// them.
	byLock := func(node int) []int {
		if node >= 0 {
			return next(node)
		}
		var to []int
		for _, tid := range byPID[-node] {
			if g.Waiters[tid].ForTID != 0 {
				to = append(to, tid)
			}
		}
		return to
	}
	var circles [][]int
	for _, part := range components(nodes, next) {
		c := shortestCircle(part, byLock)
		if c == nil {
			c = shortestCircle(part, next)
		}
		if c != nil {
			circles = append(circles, lowestFirst(c))
		}
	}
	slices.SortFunc(circles, func(a, b []int) int { return a[0] - b[0] })
	return circles
}

// circlesOfOwners is for waits that each name one thread, as locks do: following
// them once finds every circle.
func circlesOfOwners(nodes []int, owners map[int]int) [][]int {
	round := make(map[int]int32, len(nodes)) // in which round a thread was met
	var circles [][]int
	for i, start := range nodes {
		this := int32(i + 1)
		at := start
		for round[at] == 0 {
			to, waits := owners[at]
			if !waits {
				break
			}
			round[at] = this
			at = to
		}
		if round[at] != this {
			continue // leads out, or into what an earlier round has met
		}
		circle := []int{at}
		for next := owners[at]; next != at; next = owners[next] {
			circle = append(circle, next)
		}
		circles = append(circles, lowestFirst(circle))
	}
	slices.SortFunc(circles, func(a, b []int) int { return a[0] - b[0] })
	return circles
}

// mostStarts bounds from how many threads of a part a circle is looked for.
const mostStarts = 64

// shortestCircle finds a short circle in a strongly connected part, through a
// thread that is as low as possible; nil if there is none.
func shortestCircle(part map[int]bool, next func(int) []int) []int {
	threads := make([]int, 0, len(part))
	for n := range part {
		if n > 0 {
			threads = append(threads, n)
		}
	}
	sort.Ints(threads)
	for _, start := range threads[:min(len(threads), mostStarts)] {
		if c := circleThrough(start, part, next); c != nil {
			return c
		}
	}
	return nil
}

func lowestFirst(c []int) []int {
	low := 0
	for i := range c {
		if c[i] < c[low] {
			low = i
		}
	}
	return append(append([]int(nil), c[low:]...), c[:low]...)
}

// circleThrough is a shortest way from a thread back to it.
func circleThrough(start int, part map[int]bool, next func(int) []int) []int {
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, to := range next(node) {
			if to == start {
				var circle []int
				for at := node; ; at = from[at] {
					if at > 0 {
						circle = append(circle, at)
					}
					if at == start {
						break
					}
				}
				slices.Reverse(circle)
				return circle
			}
			if _, seen := from[to]; !seen && part[to] {
				from[to] = node
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// components are the strongly connected parts of a graph (Tarjan 1972, without
// recursion: a circle may have 100,000 threads).
func components(nodes []int, next func(int) []int) []map[int]bool {
	type visit struct {
		node, edge int
		to         []int
	}
	number, low, onStack := make(map[int]int, len(nodes)), make(map[int]int, len(nodes)), make(map[int]bool, len(nodes))
	var stack []int
	var parts []map[int]bool
	for _, root := range nodes {
		if number[root] != 0 {
			continue
		}
		var path []visit
		enter := func(n int) {
			number[n] = len(number) + 1
			low[n] = number[n]
			stack, onStack[n] = append(stack, n), true
			path = append(path, visit{node: n, to: next(n)})
		}
		enter(root)
		for len(path) > 0 {
			v := &path[len(path)-1]
			if v.edge < len(v.to) {
				to := v.to[v.edge]
				v.edge++
				if number[to] == 0 {
					enter(to)
				} else if onStack[to] {
					low[v.node] = min(low[v.node], number[to])
				}
				continue
			}
			n, to := v.node, v.to
			path = path[:len(path)-1]
			if len(path) > 0 {
				p := path[len(path)-1].node
				low[p] = min(low[p], low[n])
			}
			if low[n] != number[n] {
				continue
			}
			if stack[len(stack)-1] == n && !slices.Contains(to, n) {
				stack = stack[:len(stack)-1] // alone, and not waiting for itself
				onStack[n] = false
				continue
			}
			part := map[int]bool{}
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[top] = false
				part[top] = true
				if top == n {
					break
				}
			}
			parts = append(parts, part)
		}
	}
	return parts
}
