package tree

import (
	"bellwether/internal/record"
	"bellwether/wire"
)

// prepareReconfig checks the session and the permission. Request.Reconfigure checks the
// change itself; its refusal comes before that of the permission, as in ZooKeeper. The
// version of the znode is always -1.
func (p *proposal) prepareReconfig(r *wire.ReconfigRequest) (wire.OpCode, record.TxnBody, wire.Code) {
	op := wire.OpReconfig
	var v view
	switch code := p.checkSession(); {
	case !p.t.o.Reconfig && code == wire.OK:
		return op, nil, wire.ErrReconfigDisabled
	case code != wire.OK:
		return op, nil, code
	case p.reconfigure == nil:
		return op, nil, wire.ErrUnimplemented
	case !p.t.look(configPath, &v):
		return op, nil, wire.ErrNoNode
	}
	text, code := p.reconfigure(r, p.permits(v.acl, wire.PermWrite), p.zxid)
	if code != wire.OK {
		return op, nil, code
	}
	if text == "" {
		return wire.OpError, nil, wire.OK
	}
	after := v
	after.stat.Version = -1
	after.stat.Mzxid, after.stat.Mtime = p.zxid, p.now
	after.dataLen = int32(len(text))
	p.put(configPath, &v, &after)
	return op, &record.SetDataTxn{Path: configPath, Data: []byte(text), Version: -1}, wire.OK
}

// Described returns the text of the configuration znode, and the zxid that wrote it.
func (t *Tree) Described() (text string, at wire.Zxid) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(configPath)
	if n == nil {
		return "", 0
	}
	return string(n.data()), n.mzxid
}

// PreferredLeader returns the data of the znode PreferredLeaderPath; ok is false if there is none.
func (t *Tree) PreferredLeader() (data string, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(PreferredLeaderPath)
	if n == nil {
		return "", false
	}
	return string(n.data()), true
}
