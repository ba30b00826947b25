// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Application answers the operator's connections to a port of pods, whose containers do not run on
// simulated nodes. Exactly one of Program and HTTP is set.
type Application struct {
	// Pods is a label selector, such as app=web.
	Pods string `json:"pods"`
	// Port is the port of the pods. ServicePort is the port of their Services, if that differs.
	Port        int `json:"port"`
	ServicePort int `json:"servicePort,omitempty"`
	// Program is a command that sh -c runs beside the operator, once for all pods. It listens on the
	// TCP address in the environment variable ADDRESS, and gets the bytes of each connection.
	Program string `json:"program,omitempty"`
	// HTTP lists the answers to HTTP requests. Requests that match none are answered with 404.
	HTTP []Answer `json:"http,omitempty"`

	Selector labels.Selector `json:"-"`
}

// Answer is an answer to HTTP requests with a path, such as /healthz.
type Answer struct {
	// Method restricts the answer to requests with this method. Defaults to any.
	Method string `json:"method,omitempty"`
	Path   string `json:"path"`
	// Status defaults to 200.
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
}

// Name returns the name of the application in faults and reports, such as app=web:8080.
func (a *Application) Name() string { return fmt.Sprintf("%s:%d", a.Pods, a.Port) }

// Ports returns the ports to which the operator connects: the port of the pods, and the port of their
// Services if that differs.
func (a *Application) Ports() []int {
	if a.ServicePort == a.Port {
		return []int{a.Port}
	}
	return []int{a.Port, a.ServicePort}
}

// hidden reports whether an earlier application has the same pods and port.
func (a *Application) hidden(by Application) bool {
	return by.Port == a.Port && by.Selector != nil && by.Selector.String() == a.Selector.String()
}

// compile validates an application, and sets its defaults.
func (a *Application) compile() error {
	var err error
	if a.Pods == "" {
		return errors.New("pods: want a label selector, such as app=web")
	}
	if a.Selector, err = labels.Parse(a.Pods); err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	if a.ServicePort == 0 {
		a.ServicePort = a.Port
	}
	for i, port := range a.Ports() {
		if port < 1 || port > 65535 {
			return fmt.Errorf("%s: %d: want a number from 1 to 65535", []string{"port", "servicePort"}[i], port)
		}
	}
	if (a.Program == "") == (len(a.HTTP) == 0) {
		return errors.New("want exactly one of program and http")
	}
	for i := range a.HTTP {
		if err := a.HTTP[i].compile(); err != nil {
			return fmt.Errorf("http[%d]: %w", i, err)
		}
		if slices.ContainsFunc(a.HTTP[:i], a.HTTP[i].hidden) {
			return fmt.Errorf("http[%d]: an earlier answer is for the same requests", i)
		}
	}
	return nil
}

// hidden reports whether an earlier answer matches all requests that this one matches.
func (a *Answer) hidden(by Answer) bool {
	return by.Path == a.Path && (by.Method == "" || by.Method == a.Method)
}

// methodForm is the form of the methods of HTTP.
var methodForm = regexp.MustCompile(`^[A-Z]*$`)

func (a *Answer) compile() error {
	if !strings.HasPrefix(a.Path, "/") || strings.ContainsAny(a.Path, "?#") {
		return fmt.Errorf("path: %q: want a path such as /healthz, without a query", a.Path)
	}
	if !methodForm.MatchString(a.Method) {
		return fmt.Errorf("method: %q: want one such as POST", a.Method)
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Status < 200 || a.Status > 599 {
		return fmt.Errorf("status: %d: want one from 200 to 599", a.Status)
	}
	return nil
}

// Ports returns the ports of pods and Services that the operator can connect to, each once.
func (w *Workload) Ports() []int {
	var ports []int
	for i := range w.Applications {
		ports = append(ports, w.Applications[i].Ports()...)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// ApplicationPrograms returns the set of names of the applications that are programs.
func (w *Workload) ApplicationPrograms() map[string]bool {
	names := map[string]bool{}
	for i := range w.Applications {
		if a := &w.Applications[i]; a.Program != "" {
			names[a.Name()] = true
		}
	}
	return names
}

// Commands returns the shell commands of the workload's programs, applications and steps.
func (w *Workload) Commands() []string {
	commands := slices.Clone(w.Programs)
	for i := range w.Applications {
		if program := w.Applications[i].Program; program != "" {
			commands = append(commands, program)
		}
	}
	for i := range w.Steps {
		if run := w.Steps[i].Run; run != "" {
			commands = append(commands, run)
		}
	}
	return commands
}
