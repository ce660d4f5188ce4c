package app_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tabled is one public failure report, or one finding of the red team. Its
// tests are those of this package and of e2e whose name starts with its number,
// and those that note names.
type tabled struct {
	number int
	note   string // where else it is tested, or how it is judged differently
}

// reports are the numbered cases of people's failure reports.
var reports = []tabled{
	{1, ""},
	{3, "the moved tag is reported by syncgate pin --check: cmd/syncgate/testdata/script/pin.txt"},
	{5, ""},
	{7, "the render never looks at Argo CD's difference"},
	{9, "timings and retries: plugin/registry"},
	{11, "redirects: plugin/registry TestCredentialsAreNotSentToWhereARegistryRedirects"},
	{13, "waiting as long as was asked: plugin/registry"},
	{15, "judged differently: a receipt holds the reference as written and its digest, not the mirror that was asked, which is the operator's"},
	{17, "judged differently: the refusal does not say that the child belongs to the index, because nothing here knows the index"},
	{19, "the webhook has no registry to ask: plugin/webhook"},
	{21, ""},
	{23, ""},
	{25, "judged differently: the tag's text is gated, and the refusal shows the new reference without saying that the content is the same"},
	{27, "judged differently: this kustomize does match an entry whose name holds the very tag"},
	{29, ""},
	{31, "at admission with 33 and 39"},
	{33, "at admission: TestCase031PlacesThatOthersOverlookedAreJudged"},
	{35, "an image that is injected is not judged: docs/threat-model.md (F30); in a bare Pod it is: TestHandTypedKubectlIsAnsweredRightly"},
	{37, "judged differently: workloadRef is not followed, the Deployment that it names is gated itself"},
	{39, "judged differently: image-like arguments are gated as a command, and not listed apart; at admission: TestCase031PlacesThatOthersOverlookedAreJudged"},
	{41, "judged differently: a bundle is gated where policy kinds name it, and not found without"},
	{43, ""},
	{45, ""},
	{47, ""},
	{49, ""},
	{51, ""},
	{53, ""},
	{55, ""},
	{57, ""},
	{59, "Helm's upgrade sends what kubectl apply does"},
	{61, "a process that goes on: TestBackstopReplicasJudgeByTheMountedPolicy, TestABadNewFileKeepsTheLastGoodOne"},
	{63, "a process that goes on: TestBackstopReplicasJudgeByTheMountedPolicy"},
	{65, "judged differently: only the receipt's time is shown, because a refusal must not change at each refresh"},
	{67, "at admission: TestRedTeamF40ARevokedImageRunsOnAndComesNowhereElse"},
	{69, "at admission: TestHandTypedKubectlIsAnsweredRightly"},
	{71, ""},
	{73, "against a real API server: e2e"},
	{75, ""},
	{77, ""},
	{79, ""},
	{81, ""},
	{83, "as a process: cmd/syncgate/reasons_test.go"},
	{85, "against Argo CD itself: e2e"},
	{87, "docs/argocd.md, Limits: of several sources each is rendered alone"},
	{89, "judged differently: bound to the object and the environment, not to the Application's name"},
	{91, ""},
	{93, "judged differently: a variable without a value is refused even where Flux is told not to be strict"},
	{95, ""},
	{97, ""},
	{99, "a plain file's refusal names the second line alone"},
	{101, ""},
}

// findings are those of the red team.
var findings = []tabled{
	{1, ""},
	{2, ""},
	{3, "TestAnOutageOfTheWebhookStopsNothingOrdinary"},
	{4, ""},
	{5, ""},
	{6, ""},
	{7, ""},
	{8, ""},
	{9, ""},
	{10, ""},
	{11, ""},
	{12, ""},
	{13, "doctor finds out afterwards: TestDoctorPassesOnlyWhenConverged"},
	{14, ""},
	{15, ""},
	{16, "undo and create job --from: TestHandTypedKubectlIsAnsweredRightly; presets: F41"},
	{17, ""},
	{18, ""},
	{19, ""},
	{20, "one digest under all policies: TestEachExamplePolicyGivesAnObjectTheSameDigest"},
	{21, ""},
	{22, ""},
	{23, ""},
	{24, ""},
	{25, "Flux's generator: e2e/fluxgen"},
	{26, "TestScaleOfAnObjectPastTheBudgetEndsInRunningPods"},
	{27, "every field of the API: plugin/projection"},
	{28, ""},
	{29, ""},
	{30, "said"},
	{31, "said"},
	{32, ""},
	{33, ""},
	{34, "fuzzed in plugin/projection"},
	{35, ""},
	{36, ""},
	{37, "TestAGatedFieldThatMovesIsNamed"},
	{38, ""},
	{39, ""},
	{40, ""},
	{41, ""},
	{42, ""},
	{43, "plugin/lock"},
	{44, "TestTheOffSwitchIsTheAdministratorsAndEnds, TestBreakGlassAndOffSwitchWorkWithTheControllersDead"},
	{45, "said"},
	{46, "TestDoctorPassesOnlyWhenConverged"},
	{47, "TestFixedpointNamesWhatTheClusterDecides"},
	{48, ""},
	{49, ""},
	{50, "mended in the specification's text"},
}

// said are the findings whose cost stands in docs/threat-model.md.
var said = []int{5, 8, 9, 11, 13, 17, 24, 28, 30, 31, 45}

// testNames returns the names of the tests in a folder and, if below is true, in
// all those below it. A method that a test runs as a subtest counts like one.
func testNames(t *testing.T, root string, below bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (!below || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				out = append(out, fn.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// testName is a test that a note names.
var testName = regexp.MustCompile(`\bTest[A-Z]\w+`)

// checkTable wants every row tested or explained,
// every test that has a number in a row, and every test that a note names.
func checkTable(t *testing.T, rows []tabled, format string, explained func(tabled) bool) {
	t.Helper()
	names := slices.Concat(testNames(t, ".", false), testNames(t, "../../e2e", false))
	everywhere := slices.Concat(testNames(t, "..", true), names)
	tested := map[string]bool{}
	for i, row := range rows {
		if i > 0 && rows[i-1].number >= row.number {
			t.Errorf("%d stands behind %d", row.number, rows[i-1].number)
		}
		prefix, found := fmt.Sprintf(format, row.number), false
		for _, n := range names {
			if rest, ok := strings.CutPrefix(n, prefix); ok && strings.Trim(rest, "0123456789") == rest {
				found, tested[n] = true, true
			}
		}
		for _, n := range testName.FindAllString(row.note, -1) {
			found = true
			if !slices.Contains(everywhere, n) {
				t.Errorf("%d names %s, which there is not", row.number, n)
			}
		}
		if !found && !explained(row) {
			t.Errorf("%d has no test %s...", row.number, prefix)
		}
	}
	stem := format[:strings.Index(format, "%")]
	for _, n := range names {
		if regexp.MustCompile("^"+stem+`\d`).MatchString(n) && !tested[n] {
			t.Errorf("%s is of no row", n)
		}
	}
}

func TestEveryReportIsTested(t *testing.T) {
	checkTable(t, reports, "TestCase%03d", func(tabled) bool { return false })
}

func TestEveryFindingIsTested(t *testing.T) {
	checkTable(t, findings, "TestRedTeamF%02d", func(r tabled) bool { return r.note == "said" || r.number == 50 })
}

func TestEveryFindingThatIsSaidIsInTheThreatModel(t *testing.T) {
	text := mustRead(t, "../../docs/threat-model.md")
	for _, n := range said {
		paragraph := regexp.MustCompile(fmt.Sprintf(`(?m)^\*\*[^*\n]+\*\* \(F%d\)\. .{80,}$`, n))
		if !paragraph.MatchString(text) {
			t.Errorf("docs/threat-model.md has no paragraph that starts with **...** (F%d).", n)
		}
	}
	for _, row := range findings {
		if row.note == "said" && !slices.Contains(said, row.number) {
			t.Errorf("F%d is called said and not looked for", row.number)
		}
	}
}

// shared reads a file that is kept beside the repository, if there is one.
func shared(t *testing.T, file string) string {
	t.Helper()
	dir := os.Getenv("SYNCGATE_SHARED")
	if dir == "" {
		dir = "../../../shared" // beside the repository
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if os.IsNotExist(err) {
		t.Skip(dir + " has no " + file + " (SYNCGATE_SHARED names the folder)")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func numbers(rows []tabled) map[int]bool {
	out := map[int]bool{}
	for _, r := range rows {
		out[r.number] = true
	}
	return out
}

func TestNoReportIsForgotten(t *testing.T) {
	known := numbers(reports)
	found := regexp.MustCompile(`(?m)^(\d+)\. \(`).FindAllStringSubmatch(shared(t, "cases/README.md"), -1)
	if len(found) == 0 {
		t.Fatal("no numbered case in the file")
	}
	for _, m := range found {
		n, err := strconv.Atoi(m[1])
		if err != nil || !known[n] {
			t.Errorf("case %s is in no row", m[1])
		}
	}
}

func TestNoFindingIsForgotten(t *testing.T) {
	known, toSay := numbers(findings), map[int]bool{}
	for _, n := range said {
		toSay[n] = true
	}
	rows := regexp.MustCompile(`(?m)^\| (F\d+[^|]*)\|([^|]*)\|`).FindAllStringSubmatch(shared(t, "research/redteam.md"), -1)
	if len(rows) == 0 {
		t.Fatal("no finding in the file")
	}
	for _, row := range rows {
		for _, m := range regexp.MustCompile(`F(\d+)`).FindAllStringSubmatch(row[1], -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil || !known[n] {
				t.Errorf("F%s is in no row", m[1])
			}
			if strings.Contains(row[2], "said") && !toSay[n] {
				t.Errorf("F%d became %q and is not looked for in the threat model", n, strings.TrimSpace(row[2]))
			}
		}
	}
}
