package tree

import (
	"strings"

	"bellwether/internal/quota"
	"bellwether/wire"
)

// quotaFor finds the quota to which a path counts: the quota of the longest prefix of the
// path that has limits. The root has no quota.
func (t *Tree) quotaFor(path string) (q *node, prefix string) {
	if t.quotas == nil || t.quotas.children == nil || len(path) < 2 {
		return nil, ""
	}
	n, end := t.quotas, 0
	for rest := path[1:]; ; {
		name, more, found := strings.Cut(rest, "/")
		if n = n.children.get(name, t.key.name(name)); n == nil {
			return q, prefix
		}
		end += 1 + len(name)
		if t.child(n, quota.LimitsName) != nil {
			q, prefix = n, path[:end]
		}
		if !found {
			return q, prefix
		}
		rest = more
	}
}

func (t *Tree) child(n *node, name string) *node { return n.children.get(name, t.key.name(name)) }

// account adds a change at a path to the usage of the quota that the path belongs to.
func (t *Tree) account(path string, count, bytes int64) {
	if count == 0 && bytes == 0 {
		return
	}
	q, prefix := t.quotaFor(path)
	if q == nil {
		return
	}
	stats := t.child(q, quota.StatsName)
	if stats == nil {
		return
	}
	before, ok := quota.Parse(string(stats.data()))
	if !ok || before.Count < 0 || before.Bytes < 0 {
		t.recount(stats, prefix) // a client has overwritten the usage with other data
		return
	}
	after := quota.Quota{Count: before.Count + count, Bytes: before.Bytes + bytes}
	t.writeUsage(stats, after)
	limits, _ := quota.Parse(string(t.child(q, quota.LimitsName).data()))
	t.crossed(prefix, false, limits.Count, limits.HardCount, before.Count, after.Count)
	t.crossed(prefix, true, limits.Bytes, limits.HardBytes, before.Bytes, after.Bytes)
}

// crossed reports a limit once, when the usage exceeds it. If there is a hard limit, the
// soft limit is not looked at.
func (t *Tree) crossed(prefix string, bytes bool, soft, hard, before, after int64) {
	limit := soft
	if hard >= 0 {
		limit = hard
	}
	if limit >= 0 && before <= limit && after > limit {
		t.observe(QuotaExceeded{Path: prefix, Bytes: bytes, Hard: hard >= 0, Used: after, Limit: limit})
	}
}

func (t *Tree) writeUsage(stats *node, q quota.Quota) {
	text := q.Usage()
	t.bytes += int64(len(text) - stats.dataLen())
	stats.rewrite([]byte(text))
}

// recount counts the usage of a prefix anew and writes it.
func (t *Tree) recount(stats *node, prefix string) {
	var q quota.Quota
	if top := t.find(prefix); top != nil {
		walk(top, func(n *node) {
			q.Count++
			q.Bytes += int64(n.dataLen())
		})
	}
	t.writeUsage(stats, q)
}

// walk calls visit for a znode and everything below it, in no order.
func walk(top *node, visit func(*node)) {
	stack := []*node{top}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		visit(n)
		n.children.each(func(kid *node) { stack = append(stack, kid) })
	}
}

// quotaCreated writes the usage into a new stats znode, and ignores the data with which
// it was created.
func (t *Tree) quotaCreated(path string, n *node) {
	rest, ok := strings.CutPrefix(path, quota.Root)
	if !ok {
		return
	}
	if prefix, ok := strings.CutSuffix(rest, "/"+quota.StatsName); ok && prefix != "" {
		t.recount(n, prefix)
	}
}

// recountAll counts the usage of every quota that has limits. It is needed after loading
// a snapshot.
func (t *Tree) recountAll() {
	if t.quotas == nil {
		return
	}
	walk(t.quotas, func(n *node) {
		if t.child(n, quota.LimitsName) == nil {
			return
		}
		if stats := t.child(n, quota.StatsName); stats != nil {
			t.quotaCreated(t.path(stats), stats)
		}
	})
}

// checkQuota refuses a write that would take the applied usage over a hard limit, if
// quotas are enforced. If the limits cannot be parsed it refuses every write, as
// ZooKeeper does, with the code of a request that cannot be decoded.
func (t *Tree) checkQuota(path string, count, bytes int64) wire.Code {
	if !t.o.EnforceQuota {
		return wire.OK
	}
	q, prefix := t.quotaFor(path)
	if q == nil {
		return wire.OK
	}
	node := t.child(q, quota.LimitsName)
	limits, ok := quota.Parse(string(node.data()))
	if !ok || node.data() == nil {
		t.observe(QuotaUnreadable{Path: prefix, Limits: string(node.data())})
		return wire.ErrMarshalling
	}
	stats := t.child(q, quota.StatsName)
	if stats == nil {
		return wire.OK
	}
	used, _ := quota.Parse(string(stats.data()))
	over := QuotaExceeded{Path: prefix, Hard: true, Used: used.Count + count, Limit: limits.HardCount}
	if count <= 0 || over.Limit < 0 || over.Used <= over.Limit {
		over = QuotaExceeded{Path: prefix, Hard: true, Bytes: true, Used: used.Bytes + bytes, Limit: limits.HardBytes}
		if bytes <= 0 || over.Limit < 0 || over.Used <= over.Limit {
			return wire.OK
		}
	}
	t.observe(over)
	return wire.ErrQuotaExceeded
}
