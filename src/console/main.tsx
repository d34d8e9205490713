/** The console: finds the page for an address, and shows the login page when the server wants one. */
import { render } from "preact";
import { address, followLinks } from "./address.ts";
import { ClusterPage } from "./pages/cluster.tsx";
import { JobPage } from "./pages/job.tsx";
import { JobsPage } from "./pages/jobs.tsx";
import { LoginPage } from "./pages/login.tsx";
import { doorPages } from "millrace:door-pages";
import { findSession, loginWanted, session } from "./server.ts";

function Page() {
  if (loginWanted.value) return <LoginPage />;
  if (!session.value) return <p class="quiet">Asking the node who you are.</p>;
  const [path = "/"] = address.value.split("?");
  const job = /^\/console\/jobs\/([^/]+)$/.exec(path)?.[1];
  if (job !== undefined) return <JobPage key={job} job={decodeURIComponent(job)} />;
  if (path === "/console/cluster") return <ClusterPage />;
  if (path === "/" || path === "/console/" || path === "/console/jobs") return <JobsPage />;
  const ofDoor = doorPages.find(
    (page) => path === `/console/${page.path}` || path.startsWith(`/console/${page.path}/`),
  );
  if (ofDoor) return <ofDoor.Page key={path} rest={path.slice(`/console/${ofDoor.path}/`.length)} />;
  return <p>There is no page at this address.</p>;
}

const Shell = () => (
  <>
    <header>
      <strong>Millrace</strong>
      <nav aria-label="pages">
        <a href="/console/jobs">Jobs</a>
        {doorPages.map(({ path, title }) => (
          <a key={path} href={`/console/${path}`}>
            {title}
          </a>
        ))}
        <a href="/console/cluster">Cluster</a>
      </nav>
      <span class="state">{session.value && `${session.value.name}, ${session.value.roles.join(", ")}`}</span>
    </header>
    <main>
      <Page />
    </main>
  </>
);

followLinks();
void findSession();
const root = document.querySelector("#app");
if (root) render(<Shell />, root);
