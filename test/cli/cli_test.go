// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli tests the kubectl plugin as users run it: it runs kubectl tide as a process, with and
// without a terminal, and checks the output.
package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var (
	cluster framework.Cluster
	// path is a directory with links to kubectl and the plugin. It comes first in the PATH of the
	// tested commands.
	path string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if path, err = links(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(path)
	return framework.Main(m, &cluster, "--audit")
}

// links creates the directory for `path`.
func links() (string, error) {
	sandbox := cmp.Or(os.Getenv("SANDBOX_BIN"), filepath.Join(framework.Root(), "bin", "sandbox"))
	tide := cmp.Or(os.Getenv("TIDE_BIN"), filepath.Join(framework.Root(), "bin", "kubectl-tide"))
	for _, binary := range []string{sandbox, tide} {
		if _, err := os.Stat(binary); err != nil {
			return "", fmt.Errorf("%w: run make build, or set SANDBOX_BIN and TIDE_BIN", err)
		}
	}
	dir, err := os.MkdirTemp("", "tide-path-")
	if err != nil {
		return "", err
	}
	// The sandbox binary acts as kubectl when it is started under that name.
	return dir, errors.Join(os.Symlink(sandbox, filepath.Join(dir, "kubectl")), os.Symlink(tide, filepath.Join(dir, "kubectl-tide")), os.Symlink(tide, filepath.Join(dir, "kubectl_complete-tide")))
}

// result holds the output and the exit code of a kubectl tide run.
type result struct {
	stdout, stderr string
	code           int
}

// command describes a run of kubectl tide.
type command struct {
	// within is a command, with arguments, to which the kubectl tide command line is appended.
	within     []string
	kubeconfig string
	env        []string
	stdin      string
	args       []string
}

func (c command) process() *exec.Cmd {
	line := slices.Concat(c.within, []string{filepath.Join(path, "kubectl"), "tide"}, c.args)
	p := exec.Command(line[0], line[1:]...)
	// The time zone is UTC, and colour settings in the tests' environment are ignored.
	p.Env = append([]string{
		"PATH=" + path + ":/usr/bin:/bin", "HOME=" + path, "TZ=UTC", "TERM=xterm", "KUBECONFIG=" + cmp.Or(c.kubeconfig, cluster.Kubeconfig),
	}, c.env...)
	p.Stdin = strings.NewReader(c.stdin)
	return p
}

// run runs kubectl tide without a terminal.
func (c command) run(t *testing.T) result {
	t.Helper()
	framework.BeginInTime(t)
	var stdout, stderr bytes.Buffer
	p := c.process()
	p.Stdout, p.Stderr = &stdout, &stderr
	return result{code: code(t, p.Run()), stdout: stdout.String(), stderr: stderr.String()}
}

// runOn runs kubectl tide on a terminal of the given width, and returns the terminal's output.
func (c command) runOn(t *testing.T, columns int) result {
	t.Helper()
	framework.BeginInTime(t)
	ours, theirs := terminal(t, columns)
	p := c.process()
	p.Stdin, p.Stdout, p.Stderr = theirs, theirs, theirs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	var shown bytes.Buffer
	_, _ = io.Copy(&shown, ours) // Reading fails once all processes have closed the terminal.
	return result{code: code(t, p.Wait()), stdout: strings.ReplaceAll(shown.String(), "\r\n", "\n")}
}

// terminal opens a pseudo terminal and returns the test's end and the command's end.
func terminal(t *testing.T, columns int) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo terminals: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func code(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		t.Fatal(err)
		return -1
	}
}

// unobserved matches the note that no manager has observed an object for some seconds, or has
// noticed a request yet. In most tests no manager is running, or the manager may need longer on a
// busy machine.
var unobserved = regexp.MustCompile(`(?m)^note: no manager has (observed \w+ \S+( and \d+ others?)? for \w+|noticed the request yet): .*\n`)

// tide runs kubectl tide, and fails the test if it fails or writes to stderr.
func tide(t *testing.T, args ...string) string {
	t.Helper()
	r := command{args: args}.run(t)
	if r.code != 0 || unobserved.ReplaceAllString(r.stderr, "") != "" {
		t.Fatalf("kubectl tide %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// eventuallyCompletes waits until kubectl's shell completion of a command line prints what the
// function `want` accepts. A completion prints no names if the API server needs longer than a few
// seconds, as on a busy machine.
func eventuallyCompletes(t *testing.T, want func(printed string) bool, args ...string) {
	t.Helper()
	framework.Eventually(t, "kubectl tide "+strings.Join(args, " ")+" is completed", func() error {
		p := command{}.process()
		p.Args = append([]string{p.Args[0], "__complete", "tide"}, args...)
		out, err := p.Output()
		if err == nil && !want(string(out)) {
			err = errors.New("other names are offered")
		}
		if err != nil {
			return fmt.Errorf("%w: %q", err, out)
		}
		return nil
	})
}

// fields returns the words in each line of the given string.
func fields(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// aNamespace creates a namespace with the given name.
func aNamespace(t *testing.T, name string) {
	t.Helper()
	cluster.Apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	framework.Eventually(t, "pods can be created in "+name, func() error {
		return cluster.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// aDeployment creates a Deployment with two pods and waits until it is rolled out.
func aDeployment(t *testing.T, namespace, name string) {
	t.Helper()
	aDeploymentOf(t, namespace, name, 2)
}

// aDeploymentOf creates a Deployment with the given number of pods and waits until it is rolled
// out.
func aDeploymentOf(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
			},
		},
	}
	cluster.Apply(t, d)
	if out, err := cluster.Kubectl("", "-n", namespace, "rollout", "status", "deployment/"+name, framework.LongTimeout); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// aRestart creates a ScheduledRestart for the Deployment with the same name.
func aRestart(t *testing.T, namespace, name, schedule string, change func(*tidekeeperv1.ScheduledRestart)) *tidekeeperv1.ScheduledRestart {
	t.Helper()
	r := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: name}, Schedule: tidekeeperv1.CronExpression(schedule)},
	}
	if change != nil {
		change(r)
	}
	cluster.Apply(t, r)
	return r
}

// eventuallyStatus waits until the row of a ScheduledRestart in the output of kubectl tide restarts
// contains the string `want`.
func eventuallyStatus(t *testing.T, namespace, name, want string) {
	t.Helper()
	framework.Eventually(t, name+" is "+want, func() error {
		for _, row := range fields(tide(t, "restarts", "-n", namespace)) {
			if row[0] == name && strings.Contains(strings.Join(row, " "), want) {
				return nil
			}
		}
		return fmt.Errorf("%s", tide(t, "restarts", "-n", namespace))
	})
}

// at formats a time in the format of Tidekeeper's annotations, RFC 3339 in UTC.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// diff returns the difference between two values as an error, or nil if they are equal.
func diff(want, got any) error {
	if d := gocmp.Diff(want, got, gocmp.AllowUnexported(result{})); d != "" {
		return fmt.Errorf("(-want +got):\n%s", d)
	}
	return nil
}
