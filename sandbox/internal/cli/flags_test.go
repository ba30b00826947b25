// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tidekeeper.dev/tidekeeper/sandbox/internal/cluster"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/realnode"
)

// expect fails the test unless err contains want. If want is empty, err must be nil.
func expect(t *testing.T, about string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", about, err, want)
	}
}

// upFlagSet parses args with the flags of "up". It returns the flag set and the options that the
// flags set.
func upFlagSet(args ...string) (*pflag.FlagSet, *cluster.Options, error) {
	o := &cluster.Options{Dir: "/data", Delays: kubelet.DefaultDelays()}
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	addUp(flags, o)
	flags.String("data-dir", "", "")
	owner := flags.Int("owner", 0, "")
	err := flags.Parse(args)
	if *owner != 0 {
		o.Owner = &cluster.Owner{PID: *owner}
	}
	return flags, o, err
}

// TestChildHasAllOptions checks that "up --detach" passes all its options on to the process of the
// detached sandbox.
func TestChildHasAllOptions(t *testing.T) {
	given := []string{"--nodes=7", "--real-nodes=2", "--kubeconfig=/k", "--audit", "--fresh", "--kubernetes=1.34", "--emulated-version=1.33",
		"--feature-gates=A=true,B=false", "--runtime-config=batch/v2alpha1=true", "--keep-history", "--pod-events=false", "--pod-initialized-after=3s", "--owner=12"}
	flags, o, err := upFlagSet(given...)
	if err != nil {
		t.Fatal(err)
	}
	childFlags, child, err := upFlagSet(childArgs(*o)[2:]...)
	if err != nil {
		t.Fatal(err)
	}
	flags.Visit(func(f *pflag.Flag) {
		if got := childFlags.Lookup(f.Name); got.Value.String() != f.Value.String() {
			t.Errorf("the process has --%s=%s, and the command --%s=%s", f.Name, got.Value, f.Name, f.Value)
		}
	})
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "data-dir" && !strings.HasPrefix(f.Name, "pod-") && !f.Changed {
			t.Errorf("this test gives no --%s: whether the process has it is not known", f.Name)
		}
	})
	if child.Owner == nil || child.Owner.PID != 12 || child.Delays != o.Delays {
		t.Errorf("the process has the owner %v and the delays %v", child.Owner, child.Delays)
	}
	if args := childArgs(cluster.Options{Dir: "/data"}); slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--owner") }) {
		t.Errorf("without an owner: %q", args)
	}
}

// TestFlagsThatRunningSandboxDoesNotSatisfy checks that a second "up" joins a running sandbox that
// satisfies its flags, and that the error names the flags that are not satisfied.
func TestFlagsThatRunningSandboxDoesNotSatisfy(t *testing.T) {
	running := cluster.Status{Nodes: 5, RealNodes: 1, Kubeconfig: "/k", AuditLog: "/data/audit.log", Kubernetes: "1.34", FeatureGates: "A=true", KeepHistory: true, PodEvents: true, Owner: 12, Delays: kubelet.DefaultDelays()}
	for _, tc := range []struct{ given, want string }{
		{"", ""},
		{"--nodes=3", ""},
		{"--nodes=5", ""},
		{"--nodes=6", "--nodes=6"},
		{"--real-nodes=1", ""},
		{"--real-nodes=0", "--real-nodes=0"},
		{"--kubeconfig=/k", ""},
		{"--kubeconfig=", ""},
		{"--kubeconfig=/other", "--kubeconfig=/other"},
		{"--audit", ""},
		{"--audit=false", "--audit=false"},
		{"--fresh=false", ""},
		{"--fresh", "--fresh=true"},
		{"--kubernetes=1.34", ""},
		{"--kubernetes=1.33", "--kubernetes=1.33"},
		{"--emulated-version=1.33", "--emulated-version=1.33"},
		{"--feature-gates=A=true", ""},
		{"--feature-gates=", "--feature-gates="},
		{"--runtime-config=api/all=true", "--runtime-config=api/all=true"},
		{"--keep-history", ""},
		{"--keep-history=false", "--keep-history=false"},
		{"--pod-events=false", "--pod-events=false"},
		{"--owner=12", ""},
		{"--owner=13", "--owner=13"},
		{"--pod-initialized-after=3s", "--pod-initialized-after=3s"},
		{"--pod-initialized-after=" + kubelet.DefaultDelays().Initialized.String(), ""},
		{"--nodes=6 --fresh", "--fresh=true --nodes=6"},
	} {
		flags, o, err := upFlagSet(strings.Fields(tc.given)...)
		if err != nil {
			t.Fatal(err)
		}
		got := differing(flags, *o, running)
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want {
			t.Errorf("up %s: %q, want %q", tc.given, got, tc.want)
		}
		want := ""
		if tc.want != "" {
			want = "stop it first with 'sandbox down"
		}
		expect(t, "up "+tc.given, fits(flags, *o, running), want)
	}
}

func TestNodesOfUp(t *testing.T) {
	for _, tc := range []struct {
		nodes, real int
		want        string
	}{
		{0, 0, ""}, {5, realnode.Most, ""}, {-1, 0, "--nodes -1: a sandbox cannot have fewer than 0 nodes"},
		{0, -1, "--real-nodes -1: want a number from 0 to"}, {0, realnode.Most + 1, "want a number from 0 to"},
	} {
		expect(t, "nodes", checkNodes(cluster.Options{Nodes: tc.nodes, RealNodes: tc.real, Delays: kubelet.DefaultDelays()}), tc.want)
	}
	negative := kubelet.DefaultDelays()
	negative.Initialized = -1
	if checkNodes(cluster.Options{Delays: negative}) == nil {
		t.Error("a negative delay is not refused")
	}
}

// TestChooseRelease checks that the emulated version is validated only for the compiled-in release,
// and that the environment variable has the same effect as --kubernetes unless the flag is given.
func TestChooseRelease(t *testing.T) {
	for _, tc := range []struct{ environment, args, release, want string }{
		{"", "", "", ""},
		{"1.34", "", "1.34", ""},
		{"1.34", "--kubernetes=1.33", "1.33", ""},
		{"1.34", "--kubernetes=", "", ""},
		{"", "--emulated-version=1", "", "--emulated-version \"1\": want a version like 1.34"},
		{"", "--emulated-version=v1.34", "", "want a version like 1.34"},
		{"", "--emulated-version=1.2", "", "--emulated-version 1.2"},
		{"", "--kubernetes=1.34 --emulated-version=1", "1.34", ""},
	} {
		t.Setenv("SANDBOX_KUBERNETES", tc.environment)
		flags, o, err := upFlagSet(strings.Fields(tc.args)...)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "up "+tc.args, chooseRelease(flags, o), tc.want)
		if string(o.Kubernetes) != tc.release {
			t.Errorf("SANDBOX_KUBERNETES=%s up %s runs %q, want %q", tc.environment, tc.args, o.Kubernetes, tc.release)
		}
	}
}

func TestQuietFlags(t *testing.T) {
	for _, tc := range []struct {
		quietFlags
		until, timeout bool
		wait           bool
		want           string
	}{
		{quietFlags{0, time.Minute}, false, false, false, ""},
		{quietFlags{0, time.Minute}, false, true, false, "--timeout without --until-quiet: there is nothing to wait for"},
		{quietFlags{0, time.Minute}, true, false, false, "--until-quiet 0s: it must be more than 0"},
		{quietFlags{time.Second, time.Second}, true, true, false, "--timeout 1s: it must be more than --until-quiet 1s"},
		{quietFlags{time.Second, time.Minute}, true, false, true, ""},
	} {
		wait, err := tc.check(tc.until, tc.timeout)
		expect(t, "status", err, tc.want)
		if wait != tc.wait {
			t.Errorf("%+v: waits: %t", tc, wait)
		}
	}
}

func TestUserOfKubeconfig(t *testing.T) {
	for _, tc := range []struct {
		user   string
		given  bool
		groups []string
		want   string
	}{
		{"", false, nil, ""}, {"alice", true, []string{"a"}, ""},
		{"", true, nil, "--user is empty"}, {"", true, []string{"a"}, "--user is empty"}, {"", false, []string{"a"}, "--group without --user"},
	} {
		expect(t, "kubeconfig", checkUser(tc.user, tc.given, tc.groups), tc.want)
	}
}

// TestRunFlags checks that the flags of "run" are validated, and that --service-account is rejected
// together with --from, because both determine the ServiceAccount.
func TestRunFlags(t *testing.T) {
	for _, tc := range []struct {
		runFlags
		want string
	}{
		{runFlags{}, ""},
		{runFlags{from: "deployment/shop/op", webhooks: []string{"shop/a", "shop/b"}, webhookPort: 9443}, ""},
		{runFlags{serviceAccount: "shop/op", from: "deployment/shop/op"}, "leave one of them out"},
		{runFlags{serviceAccount: "op"}, `--service-account "op": want NAMESPACE/NAME`},
		{runFlags{serviceAccount: "a/b/c"}, "want NAMESPACE/NAME"},
		{runFlags{webhooks: []string{"shop/a", "b"}}, `--webhooks "b": want NAMESPACE/NAME`},
		{runFlags{webhookPort: -1}, "--webhook-port -1: want a port from 1 to 65535"},
		{runFlags{webhookPort: 65536}, "want a port from 1 to 65535"},
	} {
		o, err := tc.options()
		expect(t, "run", err, tc.want)
		if err == nil && (len(o.Services) != len(tc.webhooks) || !filepath.IsAbs(o.CertDir) || o.From != tc.from) {
			t.Errorf("%+v became %+v", tc.runFlags, o)
		}
	}
}

func TestProxyFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	notes, upstream := write("notes", "mine"), write("upstream", "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'https://up:1'}}]\ncontexts: [{name: a, context: {cluster: a, user: a, namespace: shop}}]\nusers: [{name: a, user: {}}]\n")
	none := func() (cluster.Dir, error) { return cluster.Dir(dir), nil }
	for _, tc := range []struct {
		change func(*proxyFlags)
		want   string
	}{
		{func(*proxyFlags) {}, ""},
		{func(f *proxyFlags) { f.write = "" }, "--write-kubeconfig is missing"},
		{func(f *proxyFlags) { f.write = notes }, "is not the kubeconfig of a proxy"},
		{func(f *proxyFlags) { f.control = "127.0.0.1:80" }, "want the file of a socket"},
		{func(f *proxyFlags) { f.control = strings.Repeat("x", longestSocket+1) }, "the path of a socket has at most"},
		{func(f *proxyFlags) { f.control = strings.Repeat("x", longestSocket) }, ""},
		{func(f *proxyFlags) { f.listen = "8001" }, "want an address like 127.0.0.1:8001"},
		{func(f *proxyFlags) { f.listen = ":8001" }, "name the address that clients are to use"},
		{func(f *proxyFlags) { f.listen = "0.0.0.0:8001" }, "name the address that clients are to use"},
		{func(f *proxyFlags) { f.scenario = filepath.Join(dir, "absent") }, "--scenario:"},
		{func(f *proxyFlags) { f.scenario = notes }, "--scenario " + notes},
		{func(f *proxyFlags) { f.kubeconfig = "" }, "there is no sandbox in " + dir},
		{func(f *proxyFlags) { f.kubeconfig = filepath.Join(dir, "absent") }, "--kubeconfig:"},
	} {
		f := proxyFlags{kubeconfig: upstream, write: filepath.Join(dir, "new"), listen: "127.0.0.1:0"}
		tc.change(&f)
		o, err := f.options(none)
		expect(t, "proxy", err, tc.want)
		if err == nil && (o.Upstream.Host != "https://up:1" || o.Namespace != "shop") {
			t.Errorf("%+v became %+v", f, o)
		}
	}
	if _, err := (proxyFlags{}).program([]string{"sh"}); err == nil || !strings.Contains(err.Error(), "--log is missing") {
		t.Errorf("a program without --log: %v", err)
	}
}

func TestExploreFlags(t *testing.T) {
	fine := exploreFlags{quiet: time.Second, settle: time.Minute, patience: time.Second, hold: time.Second}
	for _, tc := range []struct {
		change func(*exploreFlags)
		want   string
	}{
		{func(*exploreFlags) {}, ""},
		{func(f *exploreFlags) { f.quiet = 0 }, "--quiet 0s: it must be more than 0"},
		{func(f *exploreFlags) { f.patience = -1 }, "--patience -1ns: it must be more than 0"},
		{func(f *exploreFlags) { f.hold = 0 }, "--hold 0s: it must be more than 0"},
		{func(f *exploreFlags) { f.runFor = -1 }, "--for -1ns: it must be more than 0, or 0 for no limit"},
		{func(f *exploreFlags) { f.settle = f.quiet }, "--settle 1s: it must be more than --quiet 1s"},
	} {
		f := fine
		tc.change(&f)
		expect(t, "explore", f.checkTimes(), tc.want)
	}
	for _, tc := range []struct {
		text string
		i, n int
		want string
	}{{"", 1, 1, ""}, {"2/4", 2, 4, ""}, {"4/4", 4, 4, ""}, {"5/4", 0, 0, "want I/N"}, {"0/4", 0, 0, "want I/N"}, {"1", 0, 0, "want I/N"}, {"a/b", 0, 0, "want I/N"}} {
		i, n, err := shard(tc.text)
		expect(t, "shard "+tc.text, err, tc.want)
		if i != tc.i || n != tc.n {
			t.Errorf("shard %s: %d of %d", tc.text, i, n)
		}
	}
	cmd := &cobra.Command{}
	for want, f := range map[string]exploreFlags{
		"--jobs 0: at least 1 is needed":          {},
		"--html /absent/a.html: there is no dire": {jobs: 1, html: "/absent/a.html"},
		"--junit /absent/a.xml: there is no dire": {jobs: 1, junit: "/absent/a.xml"},
		"": {jobs: 1, html: filepath.Join(t.TempDir(), "a.html")},
	} {
		expect(t, "explore", f.playable(cmd, 0), want)
	}
	for want, f := range map[string]fuzzFlags{
		"--install is missing": {object: "a"}, "--object is missing": {install: []string{"a"}},
		"--nodes -1: there cannot be fewer than 0": {install: []string{"a"}, object: "a", nodes: -1},
		`--ready: "object.status =" is not an exp`: {install: []string{"a"}, object: "a", ready: "object.status ="}, "": {install: []string{"a"}, object: "a"},
	} {
		expect(t, "fuzz", f.check(), want)
	}
}

// TestNodeTemplate checks that the flags of "nodes add" accept only values that the API server
// would accept.
func TestNodeTemplate(t *testing.T) {
	for _, tc := range []struct{ pool, allocatable, labels, taints, devices, want string }{
		{"gpu", "cpu=32,memory=128Gi,example.com/gpu=2,hugepages-2Mi=4Mi", "zone=a,disk=", "dedicated=gpu:NoSchedule,spot:NoExecute", "", ""},
		{"", "", "", "", "", ""},
		{"g pu", "", "", "", "", `--pool "g pu"`},
		{"", "", "zone", "", "", `--labels "zone": want key=value`},
		{"", "", "zone=a b", "", "", `--labels "zone=a b"`},
		{"", "cpu", "", "", "", `--allocatable "cpu": want resource=quantity`},
		{"", "cpu=-1", "", "", "", "want resource=quantity"},
		{"", "gpu=1", "", "", "", `no resource is named "gpu"`},
		{"", "", "", "a=b", "", "want key=value:Effect"},
		{"", "", "", "a=b:Never", "", "want key=value:Effect"},
		{"", "", "", "", "gpu.example.com=2,gpu.example.com/large=1", ""},
		{"", "", "", "", "gpu.example.com", `--devices "gpu.example.com": want driver=count`},
	} {
		template, err := parseTemplate(tc.pool, tc.allocatable, tc.labels, tc.taints, tc.devices)
		expect(t, "nodes add", err, tc.want)
		if err == nil && tc.pool != "" && (len(template.Allocatable) != 4 || len(template.Taints) != 2 || len(template.Labels) != 3) {
			t.Errorf("template %+v", template)
		}
	}
}

// TestLeadingFlags checks that only flags before kubectl's first argument belong to the sandbox
// command. All later flags are passed on to kubectl.
func TestLeadingFlags(t *testing.T) {
	for _, tc := range []struct{ args, dir, at, rest string }{
		{"get nodes", "", "", "get nodes"},
		{"--data-dir /d --at=5 get nodes", "/d", "5", "get nodes"},
		{"--at 5 --data-dir=/d get", "/d", "5", "get"},
		{"get --at 5", "", "", "get --at 5"},
		{"-n kube-system --at 5 get", "", "", "-n kube-system --at 5 get"},
		{"--at", "", "", "--at"},
	} {
		own, rest := leading(strings.Fields(tc.args), "--data-dir", "--at")
		if own["--data-dir"] != tc.dir || own["--at"] != tc.at || strings.Join(rest, " ") != tc.rest {
			t.Errorf("%s: %v and %q", tc.args, own, rest)
		}
	}
	for text, want := range map[string]string{"12": "", "0": "want a revision", "-1": "want a revision", "now": "want a revision"} {
		_, err := parseRevision(text)
		expect(t, "--at "+text, err, want)
	}
}

// TestUnknownCommand checks that the error for an unknown subcommand suggests a similar one, or
// names the log directory for "logs", and that an empty command line is not an error.
func TestUnknownCommand(t *testing.T) {
	cmd := &cobra.Command{Use: "sandbox", SuggestionsMinimumDistance: 2}
	cmd.AddCommand(&cobra.Command{Use: "status", Run: func(*cobra.Command, []string) {}})
	for _, tc := range []struct{ args, logs, want string }{
		{"", "/data/logs", ""},
		{"logs", "/data/logs", "the logs of the components are in /data/logs"},
		{"log", "", "see 'sandbox --help'"},
		{"statsu", "/data/logs", "did you mean status?"},
		{"zzzzzzzz", "/data/logs", "see 'sandbox --help'"},
	} {
		expect(t, tc.args, unknownCommand(cmd, strings.Fields(tc.args), tc.logs), tc.want)
	}
}

// TestFuzzWorkload checks that fuzz takes the fields that a workload excludes from the verdict.
func TestFuzzWorkload(t *testing.T) {
	f := fuzzFlags{}
	f.workload = filepath.Join(t.TempDir(), "workload.yaml")
	if err := os.WriteFile(f.workload, []byte("programs: [./agent]\nunjudged: [{resource: pods, path: metadata.annotations.agent}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, unjudged, err := f.setting(&cobra.Command{})
	if err != nil || !slices.Equal(w.Programs, []string{"./agent"}) || !slices.Equal(unjudged, []string{"pods metadata.annotations.agent"}) {
		t.Errorf("%+v, unjudged %q, %v", w, unjudged, err)
	}
}
