// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"
)

// Status is the part of the output of `sandbox status -o json` that is meant for programs.
type Status struct {
	// PID is the process ID of the supervisor of the components.
	PID int `json:"pid"`
	// APIServer is the URL of the API server.
	APIServer string `json:"apiServer"`
	// RSSBytes is the total memory of all processes.
	RSSBytes   int64       `json:"rssBytes"`
	Components []Component `json:"components"`
	// Times has the durations of the start.
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

// Duration is a duration whose JSON form is text such as "4.5s".
type Duration struct{ time.Duration }

// UnmarshalText parses a duration such as "4.5s".
func (d *Duration) UnmarshalText(text []byte) (err error) {
	d.Duration, err = time.ParseDuration(string(text))
	return err
}

// Component is a program of the control plane, such as etcd.
type Component struct {
	Name string `json:"name"`
	// State is running, paused, stopped, killed or crashed.
	State    string `json:"state"`
	PID      int    `json:"pid"`
	Port     int    `json:"port"`
	Restarts int    `json:"restarts"`
	// Exit describes how the program has ended, if it has.
	Exit string `json:"exit"`
	// LogTail is the end of the log of a crashed component.
	LogTail []string `json:"logTail"`
}
