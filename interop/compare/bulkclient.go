package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// The class of ZooKeeper's command line.
const (
	zkCLI     = "org.apache.zookeeper.ZooKeeperMain"
	zkCLIPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"
)

// deleteAll deletes with Bellwether's command.
func (b *bulk) deleteAll() error {
	binary, err := target.Binary()
	if err != nil {
		return err
	}
	return b.command(binary, "deleteall", "--server", b.at, filled)
}

// deleteAllJava deletes with ZooKeeper's command line.
func (b *bulk) deleteAllJava() error {
	return b.command("java", "-Xmx"+b.plan.heap, "-cp", zkCLIPath, zkCLI, "-server", b.at, "deleteall", filled)
}

// deleteAllKazoo deletes with kazoo.
func (b *bulk) deleteAllKazoo() error {
	return b.command("/usr/bin/python3", "-c", `
import sys
from kazoo.client import KazooClient
c = KazooClient(hosts=sys.argv[1])
c.start()
c.delete(sys.argv[2], recursive=True)
c.stop()
`, b.at, filled)
}

// command runs another client's program.
func (b *bulk) command(name string, args ...string) error {
	out, err := exec.CommandContext(b.ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// rawClient is a connection on which the tests send their own packets.
type rawClient struct{ conn net.Conn }

// rawTimeout is how long a raw connection waits for a reply.
const rawTimeout = time.Minute

// dialRaw opens a session.
func dialRaw(addr string) (*rawClient, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	r := &rawClient{conn}
	q := &wire.ConnectRequest{TimeoutMS: 40_000, Password: make([]byte, wire.PasswordLen)}
	if _, err := r.conn.Write(wire.AppendFrame(nil, q)); err != nil {
		return nil, err
	}
	_, err = r.frame()
	return r, err
}

// frame reads one frame.
func (r *rawClient) frame() ([]byte, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(rawTimeout)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(r.conn, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(r.conn, frame)
	return frame, err
}

// setWatches sets watches for creation and for changes; nil: none.
func (r *rawClient) setWatches(exist, data func(i int) []string, i int) error {
	q := &wire.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}
	if exist != nil {
		q.Exist = exist(i)
	}
	if data != nil {
		q.Data = data(i)
	}
	return r.watch(q)
}

// watchFromNowOn watches paths for changes. Earlier changes cause no event.
func (r *rawClient) watchFromNowOn(data []string) error {
	return r.watch(&wire.SetWatchesRequest{RelativeZxid: math.MaxInt64, Data: data, Exist: []string{}, Child: []string{}})
}

// drain reads and discards everything until the connection ends. It uses little CPU time, and
// so leaves that time to the servers.
func (r *rawClient) drain() {
	if r.conn.SetReadDeadline(time.Time{}) == nil {
		io.Copy(io.Discard, r.conn)
	}
}

// watch sends a setWatches and reads until the reply arrives.
func (r *rawClient) watch(q *wire.SetWatchesRequest) error {
	h := &wire.RequestHeader{Xid: wire.XidSetWatches, Op: wire.OpSetWatches}
	if _, err := r.conn.Write(wire.AppendFrame(nil, h, q)); err != nil {
		return err
	}
	for {
		frame, err := r.frame()
		if err != nil {
			return err
		}
		var h wire.ReplyHeader
		if err := wire.Decode(frame, &h); err != nil {
			return err
		}
		switch {
		case h.Xid == wire.XidSetWatches && h.Err != wire.OK:
			return h.Err
		case h.Xid == wire.XidSetWatches:
			return nil
		case h.Xid != wire.XidEvent:
			return errors.New("the server sent a reply to no request")
		}
	}
}
