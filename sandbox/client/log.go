// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// LogEntry is a line in a fault proxy's log: a completed request or, if Event is set, a fault that
// was injected into a watch event.
type LogEntry struct {
	Time                                             time.Time
	ID                                               int64
	Verb, Resource, Path, Namespace, Name, UserAgent string
	Event, Fault, Rule, Error                        string
	// Upstream is the HTTP status code from the API server, and Status is the code that the client
	// received. They differ if the proxy has injected an error.
	Status, Upstream int
	Bytes            int64
	Seconds          float64
}

// LogSize returns the current size of the log in bytes, which can be passed to [Proxy.LogSince].
func (p *Proxy) LogSize() (int64, error) {
	info, err := os.Stat(p.LogFile)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// LogSince returns the log entries after the given offset in bytes, or all entries if the offset is
// 0.
func (p *Proxy) LogSince(size int64) ([]LogEntry, error) {
	file, err := os.Open(p.LogFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(size, io.SeekStart); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	var entries []LogEntry
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // The proxy has not yet finished writing the last line.
		}
		var entry LogEntry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return nil, fmt.Errorf("a line of the proxy's log: %w\n%s", err, line)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
