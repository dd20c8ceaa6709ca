declare module "*.jsonl" {
  const path: string;
  export default path;
}
