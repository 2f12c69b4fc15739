package sim

import (
	"strings"

	"bellwether/internal/sim/machine"
)

// form says what an act of a kind consists of.
type form struct {
	kind   Kind
	on     targets
	second bool // it may name a second machine
	// least and most bound the amount. Without an amount it is 0.
	least, most int64
}

// targets are the machines that a fault can hit.
type targets int

// The targets.
const (
	onServers targets = 1 << iota
	onClients
	onRacks
	onNothing // the number is 0
)

// The bounds of amounts.
const (
	longestAct = 3600 * machine.Second
	clockMax   = 1_000_000 * machine.Second
	callsMax   = 1_000_000
	bytesMax   = 1 << 40
)

// forms are the forms of all kinds.
var forms = []form{
	{Kill, onServers | onClients, false, 0, 0},
	{PowerOff, onServers | onClients, false, 0, 0},
	{CrashIn, onServers, false, 1, callsMax},
	{Start, onServers, false, 0, 0},
	{Pause, onServers | onClients, false, 0, 0},
	{Resume, onServers | onClients, false, 0, 0},
	{Suspend, onServers | onClients, false, 0, 0},
	{Awake, onServers | onClients, false, 0, 0},
	{Block, onServers, true, 0, 0},
	{Cut, onServers, true, 0, 0},
	{Join, onServers, true, 0, 0},
	{Heal, onServers, false, 0, 0},
	{Slow, onServers, true, 0, longestAct},
	{Reset, onServers, true, 0, longestAct},
	{SlowDisk, onServers, false, 0, longestAct},
	{SlowSnapshot, onServers, false, 0, longestAct},
	{HangDisk, onServers, false, 0, 0},
	{FreeDisk, onServers, false, 0, 0},
	{Filter, onServers, false, filterIn, filterIn + filterOut},
	{Unfilter, onServers, false, 0, 0},
	{SlowPort, onServers, false, 0, longestAct},
	{FullDisk, onServers, false, -1, bytesMax},
	{Lie, onServers, false, 0, lieLogs + lieSnapshots + lieEpochs},
	{EndLie, onServers, false, 0, 0},
	{Rot, onServers, false, 1, bytesMax},
	{BadSector, onServers, false, 1, bytesMax},
	{RotEpoch, onServers, false, 0, epochRotMax},
	{FailSync, onServers, false, 1, callsMax},
	{FailWrite, onServers, false, 1, callsMax},
	{Wipe, onServers, false, 0, 0},
	{LoseDisk, onServers, false, 0, 0},
	{SetClock, onServers | onClients, false, -clockMax, clockMax},
	{Jump, onServers | onClients, false, 0, longestAct},
	{JumpAny, onServers, false, 0, longestAct},
	{Hang, onClients, false, 0, 0},
	{Return, onClients, false, 0, 0},
	{TransferLeadership, onServers, true, 0, 1},
	{Enrol, onServers, false, int64(votes), int64(absent)},
	{MoveOver, onServers, false, 0, 0},
	{Recruit, onServers, false, 0, 0},
	{Reconfigure, onServers, true, 0, reconfigMost},
	{RackOff, onRacks, false, 0, 0},
	{RackOn, onRacks, false, 0, 0},
	{SwitchOff, onRacks, false, 0, 0},
	{SwitchOn, onRacks, false, 0, 0},
	{FullRack, onRacks, false, -1, bytesMax},
	{Calm, onNothing, false, 0, 0},
}

// kindNames lists all kinds, separated by commas.
func kindNames() string {
	names := make([]string, len(forms))
	for i, f := range forms {
		names[i] = string(f.kind)
	}
	return strings.Join(names, ", ")
}

// String says which numbers name such machines.
func (t targets) String() string {
	var texts []string
	if t&onServers != 0 {
		texts = append(texts, "a server, 1 to 31")
	}
	if t&onClients != 0 {
		texts = append(texts, "a client, -1 to -99")
	}
	if t&onRacks != 0 {
		texts = append(texts, "a rack, 1 to 3")
	}
	if t&onNothing != 0 {
		texts = append(texts, "no machine, 0")
	}
	return strings.Join(texts, " or ")
}

// has reports whether n names such a machine.
func (t targets) has(n int) bool {
	return t&onServers != 0 && 1 <= n && n <= machinesMax || t&onClients != 0 && -99 <= n && n <= -1 ||
		t&onRacks != 0 && 1 <= n && n <= racks || t&onNothing != 0 && n == 0
}
