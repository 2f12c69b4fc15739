package peerwire

// Identifiers that only the tests outside of the package need.
const (
	NotificationBareLen  = notificationBareLen
	NotificationPlainLen = notificationPlainLen
	PacketTypeEnd        = packetTypeEnd
	TouchedSessionLen    = touchedSessionLen
)
