package server

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"bellwether/internal/audit"
	"bellwether/internal/config"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// auditCloseMax is how long the end of a server waits for the audit log.
const auditCloseMax = 2 * time.Second

// openAudit opens the audit log of a configuration. It returns nil if the configuration asks
// for none.
func (s *Server) openAudit(c *config.Config) (*audit.Log, error) {
	if !c.Audit.Enable {
		return nil, nil
	}
	o := audit.Options{Path: c.Audit.File, Logger: s.log}
	if c.Audit.Format == "json" {
		o.Format = audit.JSON
	}
	return audit.Open(o)
}

// tryAudit returns the error that openAudit would return after a start has created the data
// directories.
func tryAudit(c *config.Config) error {
	if !c.Audit.Enable {
		return nil
	}
	folder := filepath.Dir(c.Audit.File)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) && (contains(folder, c.DataDir) || contains(folder, c.DataLogDir)) {
		return nil // a start creates the folder, or says why it cannot
	}
	return audit.Try(c.Audit.File)
}

// contains reports whether a folder is another one or contains it.
func contains(folder, other string) bool {
	from, err := filepath.Abs(folder)
	to, failed := filepath.Abs(other)
	if err != nil || failed != nil {
		return false
	}
	rel, err := filepath.Rel(from, to)
	return err == nil && filepath.IsLocal(rel)
}

// auditGauges registers the number of lost records. It is not shown without an audit log.
func (s *Server) auditGauges() {
	s.stats.registry.Gauge("audit_records_lost", func() float64 {
		if s.audit == nil {
			return math.NaN()
		}
		return float64(s.audit.Lost())
	})
}

// closeAudit writes the rest of the audit log.
func (s *Server) closeAudit() {
	if s.audit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditCloseMax)
	defer cancel()
	if err := s.audit.Close(ctx); err != nil {
		s.log.Error("the audit log is not complete", "err", err)
	}
}

// auditServer records a start or stop of this server.
func (s *Server) auditServer(operation string, result audit.Result) {
	if s.audit != nil {
		s.audit.Write(audit.Record{User: processUser(), Operation: operation, Result: result})
	}
}

// auditEphemeral records an ephemeral znode that was deleted from t because its session
// ended. As with ZooKeeper every server records it, and names the user that runs the
// server. The tree calls it under its lock. A deletion that is replayed at a start, or in a
// tree that will replace the served tree, is not recorded again.
func (s *Server) auditEphemeral(t *tree.Tree, session wire.SessionID, path string) {
	if s.serving.Load() && s.tree.Load() == t {
		s.audit.Write(audit.Record{Session: session, User: processUser(), Operation: audit.OpEphemeral, Znode: path, Result: audit.Success})
	}
}

// auditReply records an answered request if it is a change. The connection may have ended
// since. It is called by the loop, and only if there is an audit log.
func (s *Server) auditReply(o replica.Output) {
	q := o.Request
	c, ok := q.Client.(*conn)
	if !ok {
		return
	}
	r := audit.Record{Session: c.Session(), User: auditUsers(q.Identities), IP: c.addr.Addr().String(), Result: audit.Success}
	if o.Header.Err != wire.OK {
		r.Result = audit.Failure
	}
	switch q.Op {
	case wire.OpMulti:
		s.auditMulti(r, q.Body, o)
	case wire.OpReconfig:
		r.Operation = audit.OpReconfig
		if r.Result == audit.Success {
			r.Znode = configPath
		}
		s.audit.Write(r)
	default:
		if body := auditBody(q.Op); body != nil && wire.Decode(q.Body, body) == nil && describe(&r, body) {
			if path, ok := createdPath(o.Response); ok {
				r.Znode = path
			}
			s.audit.Write(r)
		}
	}
}

// configPath is the znode that a reconfig changes.
const configPath = "/zookeeper/config"

// auditBody returns an empty request of an operation that is recorded by its arguments; nil
// for any other operation.
func auditBody(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		return new(wire.CreateRequest)
	case wire.OpCreateTTL:
		return new(wire.CreateTTLRequest)
	case wire.OpDelete:
		return new(wire.PathVersionRequest)
	case wire.OpSetData:
		return new(wire.SetDataRequest)
	case wire.OpSetACL:
		return new(wire.SetACLRequest)
	}
	return nil
}

// describe fills in the operation of a decoded request and its arguments. It reports
// whether the request is recorded.
func describe(r *audit.Record, body wire.Record) bool {
	switch q := body.(type) {
	case *wire.CreateRequest:
		r.Operation, r.Znode, r.ZnodeType = audit.OpCreate, q.Path, audit.ZnodeType(q.Flags)
	case *wire.CreateTTLRequest:
		r.Operation, r.Znode, r.ZnodeType = audit.OpCreate, q.Path, audit.ZnodeType(q.Flags)
	case *wire.PathVersionRequest:
		r.Operation, r.Znode = audit.OpDelete, q.Path
	case *wire.SetDataRequest:
		r.Operation, r.Znode = audit.OpSetData, q.Path
	case *wire.SetACLRequest:
		r.Operation, r.Znode, r.ACL = audit.OpSetACL, q.Path, audit.ACL(q.ACL)
	default:
		return false
	}
	return true
}

// createdPath returns the path of a znode from the answer to its create. It differs from
// the requested one if the znode is sequential.
func createdPath(response wire.Record) (path string, ok bool) {
	switch p := response.(type) {
	case *wire.PathResponse:
		return p.Path, true
	case *wire.PathStatResponse:
		return p.Path, true
	}
	return "", false
}

// auditMulti writes a record for each part of a multi that succeeded, or one record for a multi
// that failed. Like ZooKeeper it does not record the checks of a multi, nor the type of its
// sequential znodes and of those with a TTL.
func (s *Server) auditMulti(r audit.Record, body []byte, o replica.Output) {
	results, ok := o.Response.(*wire.MultiResponse)
	var q wire.MultiRequest
	if wire.Decode(body, &q) != nil {
		return
	}
	if !ok || r.Result == audit.Failure || len(results.Results) != len(q.Ops) || failed(results) {
		r.Operation, r.Result = audit.OpMulti, audit.Failure
		s.audit.Write(r)
		return
	}
	for i, op := range q.Ops {
		part := r
		if op.Type == wire.OpCheck || !describe(&part, op.Request) {
			continue
		}
		if path, ok := createdPath(results.Results[i].Response); ok && (path != part.Znode || op.Type == wire.OpCreateTTL) {
			part.Znode, part.ZnodeType = path, ""
		}
		s.audit.Write(part)
	}
}

// failed reports whether a multi has failed: then all its results are errors.
func failed(m *wire.MultiResponse) bool {
	return len(m.Results) > 0 && m.Results[0].Type == wire.OpError
}

// auditUsers joins the names of identities with commas; the address comes last. A digest
// is represented by the name of its user.
func auditUsers(ids []wire.ID) string {
	var names, addresses []string
	for _, id := range ids {
		name := id.ID
		if id.Scheme == "digest" {
			name, _, _ = strings.Cut(name, ":")
		}
		switch {
		case strings.TrimSpace(name) == "":
		case id.Scheme == "ip":
			addresses = append(addresses, name)
		default:
			names = append(names, name)
		}
	}
	return strings.Join(append(names, addresses...), ",")
}

// processUser returns the name of the user that runs the process.
func processUser() string {
	u, err := user.Current() // cached by the standard library
	if err != nil {
		return ""
	}
	return u.Username
}
