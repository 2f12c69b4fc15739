package peerwire_test

import (
	"bufio"
	"bytes"
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Packets between servers follow each other without frames.
func ExampleReadPacket() {
	var stream []byte
	for _, p := range []*peerwire.QuorumPacket{
		{Type: peerwire.PacketDiff, Zxid: 0x100000007},
		{Type: peerwire.PacketFollowerInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion})},
	} {
		stream = wire.Append(stream, p)
	}
	r := bufio.NewReader(bytes.NewReader(stream))
	for {
		var p peerwire.QuorumPacket
		if err := peerwire.ReadPacket(r, &p, peerwire.PacketMax); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Type, p.Zxid, len(p.Data))
	}
	// Output:
	// DIFF 0x100000007 0
	// FOLLOWERINFO 0x0 20
	// EOF
}

func ExampleNotification() {
	frame := wire.AppendFrame(nil, &peerwire.Notification{
		State: peerwire.Looking, Leader: 3, ElectionEpoch: 1, Version: peerwire.NotificationPlain,
	})
	payload, err := peerwire.ReadElectionFrame(bytes.NewReader(frame), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var n peerwire.Notification
	fmt.Println(wire.Decode(payload, &n), n.State, n.Leader, len(payload))
	// Output: <nil> LOOKING 3 40
}
