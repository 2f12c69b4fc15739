package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"testing"
	"unicode/utf8"
)

// FuzzRecord decodes any input as any record; see checkRecord for the rules.
func FuzzRecord(f *testing.F) {
	seedRecords(f, func(r Record, b []byte) { f.Add(kindOf(f, r), b) })
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		checkRecord(t, records[int(kind)%len(records)], b)
	})
}

// seedRecords yields every record of the golden files with its bytes.
func seedRecords(f *testing.F, add func(Record, []byte)) {
	for _, v := range clientVectors(f) {
		raw := unhex(f, v.Hex)
		switch v.Kind {
		case "raw":
		case "ConnectRequest":
			add(new(ConnectRequest), raw[4:])
		case "ConnectResponse":
			add(new(ConnectResponse), raw[4:])
		default:
			c := Decoder(raw[4:])
			header, _ := decodeHeader(&c, v)
			add(header[0], raw[4:])
			if body := newBody(v, header[0]); body != nil {
				add(body, c.Rest())
			}
		}
	}
	samplePayloads(f, func(_ string, _ logRecord, payload []byte) { add(new(Txn), payload) })
	file := readElectionFile(f)
	for _, list := range [][]electionVector{file.Vectors, file.Probes, file.InitialProbes, file.SASL} {
		for _, v := range list {
			raw := unhex(f, v.Hex)
			switch v.Kind {
			case "INITIAL":
				add(new(InitialMessage), raw)
			case "NOTIFICATION":
				add(new(Notification), raw[4:])
			default:
				add(new(QuorumAuthPacket), raw)
			}
		}
	}
	seedPackets(f, add)
}

// seedPackets yields every captured quorum packet and the record in it.
func seedPackets(f *testing.F, add func(Record, []byte)) {
	for _, v := range quorumVectors(f) {
		raw := unhex(f, v.Hex)
		if v.Kind == "SNAPSHOT" {
			continue
		}
		add(new(QuorumPacket), raw)
		p := new(QuorumPacket)
		if err := Decode(raw, p); err != nil {
			f.Fatal(err)
		}
		for _, r := range packetData(p.Type) {
			add(r, p.Data)
		}
	}
}

// packetData are the records that the data of a packet may be.
func packetData(p PacketType) []Record {
	switch p {
	case PacketRequest:
		return []Record{new(ForwardedRequest)}
	case PacketProposal, PacketInform:
		return []Record{new(Txn)}
	case PacketPing:
		return []Record{new(TouchedSessions)}
	case PacketRevalidate:
		return []Record{new(Revalidation), new(Revalidated)}
	case PacketCommitActivate, PacketInformActivate:
		return []Record{new(Activation)}
	case PacketFollowerInfo, PacketObserverInfo:
		return []Record{new(LearnerInfo)}
	case PacketLeaderInfo:
		return []Record{new(LeaderInfo)}
	case PacketAckEpoch:
		return []Record{new(EpochAck)}
	}
	return nil
}

// FuzzTxn decodes any input as a whole transaction: it is one, and encodes
// to itself unless parts of it are not canonical, or an error names it.
func FuzzTxn(f *testing.F) {
	samplePayloads(f, func(_ string, _ logRecord, payload []byte) { f.Add(payload) })
	f.Fuzz(func(t *testing.T, b []byte) {
		var txn *Txn
		var err error
		checkAllocated(t, allocBudget(len(b)), func() { txn, err = DecodeTxn(b) })
		if (txn == nil) != (err != nil) {
			t.Fatalf("%v, error %v", txn, err)
		}
		if err != nil {
			return
		}
		again, err := DecodeTxn(txn.Append(nil))
		if err != nil {
			t.Fatalf("%+v does not decode again: %v", txn, err)
		}
		equalBytes(t, again.Append(nil), txn.Append(nil))
		checkRecord(t, func() Record { return new(Txn) }, b)
	})
}

// FuzzReadFrame reads any input as a stream of frames, cut anywhere: frames
// that came through are the input, and no length costs more than its bytes.
func FuzzReadFrame(f *testing.F) {
	var all []byte
	for _, v := range clientVectors(f) {
		raw := unhex(f, v.Hex)
		f.Add(raw, uint16(0))
		all = append(all, raw...)
	}
	f.Add(all, uint16(100))
	f.Fuzz(func(t *testing.T, b []byte, room uint16) {
		var frames [][]byte
		var err error
		frameBytes := len(b)/frameHeaderLen*24*2 + int(room) + 2*readStep // slices of them, own memory, the last one's
		checkAllocated(t, allocBudget(len(b))+frameBytes, func() { frames, err = readFrames(b, int(room)) })
		var out []byte
		for _, frame := range frames {
			var mark int
			out, mark = BeginFrame(out)
			out = EndFrame(append(out, frame...), mark)
		}
		if !bytes.HasPrefix(b, out) {
			t.Errorf("read\n%x from\n%x", out, b)
		}
		var bad *FrameError
		switch {
		case err == io.EOF && len(out) == len(b), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &bad):
		default:
			t.Errorf("error %v behind %d of %d bytes", err, len(out), len(b))
		}
	})
}

// readFrames reads frames up to the first error, the first of them into own
// memory.
func readFrames(b []byte, room int) (frames [][]byte, err error) {
	r := bufio.NewReaderSize(bytes.NewReader(b), 16)
	buf := make([]byte, room)
	for {
		frame, err := ReadFrame(r, buf, FrameMax)
		if err != nil {
			return frames, err
		}
		frames, buf = push(frames, frame), nil
	}
}

// FuzzReadPacket reads any input as a stream of quorum packets: what is
// canonical encodes to the bytes it was read from.
// FuzzValidPath: what is accepted is UTF-8, absolute, and splits into names.
func FuzzValidPath(f *testing.F) {
	for _, s := range []string{"/", "/a/", "/a//b", "/a/.", "", "a", "/\xff", "/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ValidPath(s) && (!utf8.ValidString(s) || !path.IsAbs(s) || path.Clean(s) != s) {
			t.Errorf("%q is taken for valid", s)
		}
	})
}

func FuzzReadPacket(f *testing.F) {
	var all []byte
	seedPackets(f, func(r Record, b []byte) {
		if _, ok := r.(*QuorumPacket); ok {
			f.Add(b)
			all = append(all, b...)
		}
	})
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := 0; ; {
			var p QuorumPacket
			var c Coder
			checkAllocated(t, allocBudget(len(b)-at)+2*readStep, func() {
				c = StreamDecoder(bufio.NewReaderSize(bytes.NewReader(b[at:]), 16), PacketMax)
				p.Code(&c)
			})
			if c.Err() != nil {
				if (c.Err() == io.EOF) != (at == len(b)) || errors.Is(c.Err(), ErrShort) {
					t.Errorf("error %v behind %d of %d bytes", c.Err(), at, len(b))
				}
				return
			}
			encoded, raw := Append(nil, &p), b[at:at+c.Offset()]
			if same := bytes.Equal(encoded, raw); same != c.Canonical() {
				t.Errorf("canonical %v, but\n%x encodes to\n%x", c.Canonical(), raw, encoded)
			}
			at += c.Offset()
		}
	})
}
