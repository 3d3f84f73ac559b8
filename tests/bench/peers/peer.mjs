// One part of a benchmark of another job queue, in a process of its own; peers.py starts it.
//   peer.mjs PEER fill COUNT             adds so many no-op jobs
//   peer.mjs PEER left                   prints how many jobs are not done
//   peer.mjs PEER work SETTING           runs jobs until SIGTERM: a line with the count every 100 ms, and at the end a
//                                        line of JSON: when how many were done, and how long each job with a time waited
//   peer.mjs PEER produce COUNT LEAST MOST
//                                        adds jobs one at a time, with pauses of LEAST to MOST ms, each with the time at
//                                        which it was sent; prints how long each took to add
// PEER_URL is the server's. Times are in nanoseconds, by the clock that all processes of a machine share.
import { setTimeout as pause } from "node:timers/promises";

const QUEUE = "noop";
const BULK = 5000;
const now = () => Number(process.hrtime.bigint());

const peers = {
  "graphile-worker": async (url) => {
    const { makeWorkerUtils, run, Logger } = await import("graphile-worker");
    const logger = new Logger(() => () => {});
    const utils = await makeWorkerUtils({ connectionString: url, logger });
    await utils.migrate();
    const settings = {
      default: {},
      // https://worker.graphile.org/docs/performance names these for its figures.
      fast: { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
    };
    return {
      add: (data) => utils.addJob(QUEUE, data),
      addMany: (count) => utils.addJobs(Array.from({ length: count }, () => ({ identifier: QUEUE, payload: {} }))),
      left: () =>
        utils.withPgClient(async (client) => {
          const { rows } = await client.query("SELECT count(*)::int AS count FROM graphile_worker.jobs");
          return rows[0].count;
        }),
      work: async (setting, done) => {
        const runner = await run({
          preset: { worker: { connectionString: url, logger, ...settings[setting] } },
          taskList: { [QUEUE]: async (payload) => done(payload) },
          noHandleSignals: true,
        });
        return () => runner.stop();
      },
      close: () => utils.release(),
    };
  },

  bullmq: async (url) => {
    const { Queue, Worker } = await import("bullmq");
    const { hostname, port, password } = new URL(url);
    const connection = { host: hostname, port: Number(port), password, maxRetriesPerRequest: null };
    const queue = new Queue(QUEUE, { connection });
    const settings = {
      default: {},
      // Its guides' two levers: concurrency for jobs that do not compute, and jobs removed as soon as they are done.
      fast: { concurrency: 100, removeOnComplete: { count: 0 } },
    };
    return {
      add: (data) => queue.add(QUEUE, data),
      addMany: (count) => queue.addBulk(Array.from({ length: count }, () => ({ name: QUEUE, data: {} }))),
      left: async () => {
        const counts = await queue.getJobCounts("wait", "active", "delayed", "prioritized");
        return Object.values(counts).reduce((sum, count) => sum + count, 0);
      },
      work: async (setting, done) => {
        const worker = new Worker(QUEUE, async (job) => done(job.data), { connection, ...settings[setting] });
        await worker.waitUntilReady();
        return () => worker.close();
      },
      close: () => queue.close(),
    };
  },

  "pg-boss": async (url) => {
    const module = await import("pg-boss");
    const boss = new (module.PgBoss ?? module.default)({ connectionString: url, max: 10 });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    await boss.createQueue(QUEUE);
    // Batches by hand, in any order: what its own interface offers for the largest throughput.
    const fetchLoop = async (state, done) => {
      while (!state.stopped) {
        const jobs = await boss.fetch(QUEUE, { batchSize: 1000, priority: false });
        if (!jobs?.length) {
          await pause(50);
          continue;
        }
        for (const job of jobs) done(job.data);
        await boss.complete(QUEUE, jobs.map((job) => job.id));
      }
    };
    return {
      add: (data) => boss.send(QUEUE, data),
      addMany: (count) => boss.insert(Array.from({ length: count }, () => ({ name: QUEUE, data: {} }))),
      left: async () => {
        const { rows } = await boss.getDb().executeSql(
          `SELECT count(*)::int AS count FROM pgboss.job WHERE name='${QUEUE}' AND state IN ('created','retry','active')`);
        return rows[0].count;
      },
      work: async (setting, done) => {
        if (setting === "default") {
          await boss.work(QUEUE, async (jobs) => jobs.forEach((job) => done(job.data)));
          return () => boss.stop();
        }
        const state = { stopped: false };
        const loops = [fetchLoop(state, done), fetchLoop(state, done)];
        return async () => {
          state.stopped = true;
          await Promise.all(loops);
        };
      },
      close: () => boss.stop({ graceful: false }),
    };
  },
};

async function work(peer, setting) {
  let count = 0;
  const waits = [];
  const samples = [];
  const stop = await peer.work(setting, (data) => {
    ++count;
    if (data.sent) waits.push(now() - data.sent);
  });
  const sampler = setInterval(() => samples.push([now(), count]), 10);
  const teller = setInterval(() => console.log(count), 100);
  console.log(count);
  await new Promise((resolve) => process.once("SIGTERM", resolve));
  clearInterval(teller);
  clearInterval(sampler);
  await stop();
  console.log(JSON.stringify({ samples, waits, count }));
}

async function produce(peer, count, least, most) {
  const trips = [];
  for (let i = 0; i < count; ++i) {
    await pause(least + Math.random() * (most - least));
    const sent = now();
    await peer.add({ sent });
    trips.push(now() - sent);
  }
  console.log(JSON.stringify({ trips }));
}

const [name, role, ...words] = process.argv.slice(2);
const peer = await peers[name](process.env.PEER_URL);
if (role === "fill") {
  for (let left = Number(words[0]); left > 0; left -= BULK) await peer.addMany(Math.min(left, BULK));
} else if (role === "left") {
  console.log(await peer.left());
} else if (role === "work") {
  await work(peer, words[0]);
} else if (role === "produce") {
  await produce(peer, ...words.map(Number));
}
await peer.close();
process.exit(0);
