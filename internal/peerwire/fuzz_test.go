package peerwire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// seedRecords yields every record of the golden files with its bytes.
func seedRecords(f *testing.F, add func(wire.Record, []byte)) {
	file := readElectionFile(f)
	for _, list := range [][]electionVector{file.Vectors, file.Probes, file.InitialProbes, file.SASL} {
		for _, v := range list {
			raw := wiretest.Unhex(f, v.Hex)
			switch v.Kind {
			case "INITIAL":
				add(new(peerwire.InitialMessage), raw)
			case "NOTIFICATION":
				add(new(peerwire.Notification), raw[4:])
			default:
				add(new(peerwire.QuorumAuthPacket), raw)
			}
		}
	}
	seedPackets(f, add)
}

// seedPackets yields every captured quorum packet and the record in it.
func seedPackets(f *testing.F, add func(wire.Record, []byte)) {
	for _, v := range quorumVectors(f) {
		raw := wiretest.Unhex(f, v.Hex)
		if v.Kind == "SNAPSHOT" {
			continue
		}
		add(new(peerwire.QuorumPacket), raw)
		p := new(peerwire.QuorumPacket)
		if err := wire.Decode(raw, p); err != nil {
			f.Fatal(err)
		}
		for _, r := range packetData(p.Type) {
			add(r, p.Data)
		}
	}
}

// packetData returns the records of this package that the data of a packet may be.
func packetData(p peerwire.PacketType) []wire.Record {
	switch p {
	case peerwire.PacketRequest:
		return []wire.Record{new(peerwire.ForwardedRequest)}
	case peerwire.PacketPing:
		return []wire.Record{new(peerwire.TouchedSessions)}
	case peerwire.PacketRevalidate:
		return []wire.Record{new(peerwire.Revalidation), new(peerwire.Revalidated)}
	case peerwire.PacketCommitActivate, peerwire.PacketInformActivate:
		return []wire.Record{new(peerwire.Activation)}
	case peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo:
		return []wire.Record{new(peerwire.LearnerInfo)}
	case peerwire.PacketLeaderInfo:
		return []wire.Record{new(peerwire.LeaderInfo)}
	case peerwire.PacketAckEpoch:
		return []wire.Record{new(peerwire.EpochAck)}
	}
	return nil
}

// FuzzReadPacket reads any input as a stream of quorum packets. Packets that are canonical encode to the
// bytes from which they were read.
func FuzzReadPacket(f *testing.F) {
	var all []byte
	seedPackets(f, func(r wire.Record, b []byte) {
		if _, ok := r.(*peerwire.QuorumPacket); ok {
			f.Add(b)
			all = append(all, b...)
		}
	})
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := 0; ; {
			var p peerwire.QuorumPacket
			var c wire.Coder
			wiretest.CheckAllocated(t, wiretest.AllocBudget(len(b)-at)+2*wiretest.ReadStep, func() {
				c = wire.StreamDecoder(bufio.NewReaderSize(bytes.NewReader(b[at:]), 16), peerwire.PacketMax)
				p.Code(&c)
			})
			if c.Err() != nil {
				if (c.Err() == io.EOF) != (at == len(b)) || errors.Is(c.Err(), wire.ErrShort) {
					t.Errorf("error %v behind %d of %d bytes", c.Err(), at, len(b))
				}
				return
			}
			encoded, raw := wire.Append(nil, &p), b[at:at+c.Offset()]
			if same := bytes.Equal(encoded, raw); same != c.Canonical() {
				t.Errorf("canonical %v, but\n%x encodes to\n%x", c.Canonical(), raw, encoded)
			}
			at += c.Offset()
		}
	})
}
