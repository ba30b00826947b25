// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"
)

// Status holds the fields of the output of `sandbox status -o json` that are meant for programs.
type Status struct {
	// PID is the process ID of the supervisor, which runs the components.
	PID int `json:"pid"`
	// APIServer is the URL of the API server.
	APIServer string `json:"apiServer"`
	// RSSBytes is the total resident memory of the sandbox's processes, in bytes.
	RSSBytes   int64       `json:"rssBytes"`
	Components []Component `json:"components"`
	// Times holds the durations from the start of the sandbox until the API server is ready, and
	// until the entire sandbox is ready. A duration is 0 until then.
	Times struct {
		APIServerReady Duration `json:"apiServerReady"`
		Ready          Duration `json:"ready"`
	} `json:"times"`
	Nodes struct {
		Total int    `json:"total"`
		Ready int    `json:"ready"`
		Error string `json:"error"`
	} `json:"nodes"`
}

// Duration is a time.Duration that is encoded in JSON as a string such as "4.5s".
type Duration struct{ time.Duration }

// UnmarshalText parses a duration such as "4.5s".
func (d *Duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// Component is the status of a program that the sandbox runs, such as etcd.
type Component struct {
	Name string `json:"name"`
	// State is the state of the component's process:
	//   - "running"
	//   - "paused": suspended by `sandbox component pause` (SIGSTOP), and can be resumed
	//   - "stopped": terminated (SIGTERM), because the sandbox shuts down
	//   - "killed": killed by `sandbox component kill` (SIGKILL)
	//   - "crashed": exited unexpectedly, without being stopped or killed as above
	State    string `json:"state"`
	PID      int    `json:"pid"`
	Port     int    `json:"port"`
	Restarts int    `json:"restarts"`
	// Exit describes how the program exited: with an exit code or by a signal. It is empty while
	// the program is running.
	Exit string `json:"exit"`
	// LogTail lists the last lines of a crashed component's log.
	LogTail []string `json:"logTail"`
}
